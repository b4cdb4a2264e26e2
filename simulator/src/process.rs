//! Processes that a scenario or a command puts on a device.

use crate::setting::parse_value;

/// `NVML_VALUE_NOT_AVAILABLE`.
pub(crate) const NOT_AVAILABLE: u64 = u64::MAX;

/// Which of NVML's lists a process is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Compute,
    Graphics,
    Mps,
}

/// A process to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// Bytes in use; its share of what is used on the device if left open.
    pub(crate) memory: Option<u64>,
    /// Percent of time in which its kernels ran; its share of the device's if left open.
    pub(crate) utilization: Option<u32>,
    /// In which lists it is.
    pub(crate) lists: Vec<List>,
}

impl Process {
    /// A compute process that follows the load of its device.
    pub(crate) fn new(pid: u32) -> Self {
        Self { pid, memory: None, utilization: None, lists: vec![List::Compute] }
    }

    /// Whether it is there even where nothing runs.
    pub(crate) fn stays(&self) -> bool {
        self.memory.is_some() || self.utilization.is_some()
    }

    /// Reads `<pid>[:<memory>[:<percent>[:<lists>]]]`: `-` leaves a part open, memory may be `na`,
    /// lists are letters of `cgm`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("not a process (like 4242:2GiB:35:cg): {text}");
        let mut parts = text.split(':');
        let pid = parts.next().and_then(|pid| pid.parse().ok()).ok_or_else(wrong)?;
        let mut process = Self::new(pid);
        let mut part = || parts.next().filter(|part| *part != "-");
        process.memory = part().map(|memory| bytes(memory).ok_or_else(wrong)).transpose()?;
        process.utilization = part()
            .map(|percent| percent.parse().ok().filter(|p| *p <= 100).ok_or_else(wrong))
            .transpose()?;
        if let Some(letters) = part() {
            let list = |letter| match letter {
                'c' => Some(List::Compute),
                'g' => Some(List::Graphics),
                'm' => Some(List::Mps),
                _ => None,
            };
            process.lists = letters.chars().map(list).collect::<Option<_>>().ok_or_else(wrong)?;
        }
        if parts.next().is_some() { Err(wrong()) } else { Ok(process) }
    }

    /// Reads what follows `processes`: a list, `none`, or `client`.
    pub(crate) fn parse_list(text: &str) -> Result<Option<Vec<Self>>, String> {
        match text {
            "client" => Ok(None),
            "none" => Ok(Some(Vec::new())),
            list => list.split(',').map(Self::parse).collect::<Result<_, _>>().map(Some),
        }
    }
}

/// The client's parent, for then the process exists.
pub(crate) fn stand_in() -> Process {
    // SAFETY: plain queries.
    let (parent, own) = unsafe { (libc::getppid(), libc::getpid()) };
    Process::new(u32::try_from(if parent > 1 { parent } else { own }).unwrap_or(1))
}

fn bytes(text: &str) -> Option<u64> {
    if text == "na" {
        return Some(NOT_AVAILABLE);
    }
    parse_value(text).filter(|bytes| *bytes >= 0.0).map(crate::clock::whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_a_pid_and_what_is_known_of_it() {
        assert_eq!(Process::parse("7"), Ok(Process::new(7)));
        let full = Process {
            pid: 7,
            memory: Some(2 << 30),
            utilization: Some(35),
            lists: vec![List::Compute, List::Graphics],
        };
        assert_eq!(Process::parse("7:2GiB:35:cg"), Ok(full));
        let memory = Process::parse("7:na:-:m").unwrap();
        assert_eq!((memory.memory, memory.utilization), (Some(NOT_AVAILABLE), None));
        assert_eq!(memory.lists, [List::Mps]);
        for wrong in ["", "x", "7:many", "7:1:101", "7:1:1:x", "7:1:1:c:1", "7:-1"] {
            assert!(Process::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_may_be_empty_or_left_to_the_client() {
        assert_eq!(Process::parse_list("client"), Ok(None));
        assert_eq!(Process::parse_list("none"), Ok(Some(Vec::new())));
        let two = vec![Process::new(1), Process::new(2)];
        assert_eq!(Process::parse_list("1,2"), Ok(Some(two)));
        assert!(Process::parse_list("1,,2").is_err());
    }
}
