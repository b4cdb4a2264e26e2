//! What the kernel says of this process, under the names that all Prometheus clients use.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Read from `/proc/self` on every page; what cannot be read has no series.
#[derive(Debug)]
pub(super) struct Process {
    ticks_per_second: f64,
    page_bytes: u64,
    /// When the system started, in Unix time.
    boot_seconds: Option<f64>,
}

impl Process {
    pub(super) fn new() -> Self {
        let auxv = fs::read("/proc/self/auxv").unwrap_or_default();
        Self {
            ticks_per_second: auxiliary(&auxv, AT_CLKTCK).unwrap_or(100) as f64,
            page_bytes: auxiliary(&auxv, AT_PAGESZ).unwrap_or(4096),
            boot_seconds: fs::read_to_string("/proc/stat").ok().and_then(|text| boot(&text)),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Stat::parse(&text));
        if let Some(stat) = stat {
            self.encode_stat(&stat, &mut encoder)?;
        }
        if let Some(open) = open_files() {
            gauge(&mut encoder, "process_open_fds", "Open file descriptors.", open)?;
        }
        let limits = fs::read_to_string("/proc/self/limits").ok();
        if let Some(max) = limits.and_then(|text| max_files(&text)) {
            gauge(&mut encoder, "process_max_fds", "Most file descriptors allowed.", max)?;
        }
        Ok(())
    }
}

impl Process {
    fn encode_stat(
        &self,
        stat: &Stat,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> Result<(), std::fmt::Error> {
        let seconds = |ticks: u64| ticks as f64 / self.ticks_per_second;
        let cpu = seconds(stat.cpu_ticks);
        counter(encoder, "process_cpu_seconds", "CPU time used, user and system.", cpu)?;
        let resident = stat.resident_pages.saturating_mul(self.page_bytes);
        gauge(encoder, "process_resident_memory_bytes", "Memory in RAM.", resident)?;
        gauge(encoder, "process_virtual_memory_bytes", "Address space.", stat.virtual_bytes)?;
        gauge(encoder, "process_threads", "Threads.", stat.threads)?;
        if let Some(boot) = self.boot_seconds {
            let started = boot + seconds(stat.start_ticks);
            let help = "When the process started, in Unix time.";
            gauge(encoder, "process_start_time_seconds", help, started)?;
        }
        Ok(())
    }
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: f64,
) -> Result<(), std::fmt::Error> {
    let metric = ConstCounter::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

fn gauge<N>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: N,
) -> Result<(), std::fmt::Error>
where
    ConstGauge<N>: EncodeMetric,
{
    let metric = ConstGauge::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

/// The part of `/proc/self/stat` that is served (`proc_pid_stat(5)`).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: u64,
    threads: u64,
    start_ticks: u64,
    virtual_bytes: u64,
    resident_pages: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name in brackets, which may hold anything.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Fields are numbered from 1 in the manual; the first one left is number 3.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: field(14)?.saturating_add(field(15)?),
            threads: field(20)?,
            start_ticks: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// `getauxval(3)`: the size of a page, and clock ticks per second.
const AT_PAGESZ: usize = 6;
const AT_CLKTCK: usize = 17;

/// One value of the auxiliary vector: pairs of machine words, key and value.
fn auxiliary(auxv: &[u8], key: usize) -> Option<u64> {
    const WORD: usize = size_of::<usize>();
    let word = |at: usize| {
        let bytes = auxv.get(at * WORD..(at + 1) * WORD)?;
        Some(usize::from_ne_bytes(bytes.try_into().ok()?))
    };
    (0..auxv.len() / WORD / 2)
        .find(|pair| word(pair * 2) == Some(key))
        .and_then(|pair| u64::try_from(word(pair * 2 + 1)?).ok())
}

fn boot(stat: &str) -> Option<f64> {
    stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

fn open_files() -> Option<u64> {
    // The directory that is read here is one of them, but only while it is read.
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(count.saturating_sub(1)).ok()
}

fn max_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let text = "7 (a) b (c) S 1 7 7 0 -1 4194560 900 0 0 0 12 34 0 0 20 0 5 0 1000 8192 3 18";
        let expected = Stat {
            cpu_ticks: 46,
            threads: 5,
            start_ticks: 1000,
            virtual_bytes: 8192,
            resident_pages: 3,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("7 (a) S 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn kernel_files_are_read_where_they_are_whole() {
        let pairs = [AT_PAGESZ, 4096, AT_CLKTCK, 100, 0, 0];
        let auxv: Vec<u8> = pairs.iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!(auxiliary(&auxv, AT_CLKTCK), Some(100));
        assert_eq!(auxiliary(&auxv[..12], AT_PAGESZ), None);
        assert_eq!(auxiliary(&auxv, 99), None);
        assert_eq!(boot("cpu 1 2\nbtime 1700000000\n"), Some(1_700_000_000.0));
        assert_eq!(max_files("Max open files            1024   4096   files\n"), Some(1024));
        assert_eq!(max_files("Max open files            unlimited  unlimited  files\n"), None);
    }
}
