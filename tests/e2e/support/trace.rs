//! The simulator's trace: one line a call.

/// A call as the simulator saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Call {
    pub(crate) thread: u64,
    pub(crate) function: String,
    /// `gpu0`, `gpu0/gi7/ci0`, `-`.
    pub(crate) device: String,
    pub(crate) arguments: String,
    pub(crate) code: u32,
}

impl Call {
    /// `<milliseconds> <thread> <function> <device> <arguments> = <code>`.
    pub(crate) fn parse(line: &str) -> Self {
        let (call, code) = line.rsplit_once(" = ").unwrap_or_else(|| panic!("{line}"));
        let mut words = call.split(' ').skip(1);
        let mut word = || words.next().unwrap_or_else(|| panic!("{line}")).to_owned();
        let (thread, function, device) = (word(), word(), word());
        Self {
            thread: thread.parse().unwrap(),
            function,
            device,
            arguments: words.collect::<Vec<_>>().join(" "),
            code: code.parse().unwrap(),
        }
    }
}
