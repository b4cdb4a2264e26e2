//! The driver's lines about XIDs, as `/dev/kmsg` gives them.
//!
//! A record is `<priority>,<sequence>,<microseconds>,<flags>;<message>` (the kernel's
//! Documentation/ABI/testing/dev-kmsg). The driver's messages are
//! `NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, …`; on a GPU in MIG mode
//! `(PCI:0000:3b:00 GPU-I:05 GPU-CI:00)`; drivers before R384 leave `PCI:` out.

use std::fmt;

/// A PCI address without the function, which is always 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Address {
    domain: u32,
    bus: u8,
    device: u8,
}

/// An XID that the driver logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelXid {
    pub(super) address: Address,
    /// The GPU instance, where the driver knows it.
    pub(super) instance: Option<u32>,
    pub(super) code: u64,
}

/// The XID of a line, if it is one of the driver's.
pub(super) fn parse(line: &str) -> Option<KernelXid> {
    let (prefix, message) = line.split_once(';')?;
    let priority: u32 = prefix.split(',').next()?.parse().ok()?;
    // Whoever may write to the log has another facility than the kernel's 0.
    if priority >> 3 != 0 {
        return None;
    }
    let about = message.trim_start().strip_prefix("NVRM: Xid (")?;
    let (device, rest) = about.split_once("):")?;
    let mut parts = device.split(' ');
    let address = parts.next()?;
    let address = Address::parse(address.strip_prefix("PCI:").unwrap_or(address))?;
    let instance = parts.find_map(|part| part.strip_prefix("GPU-I:"));
    let instance = instance.map(str::parse).transpose().ok()?;
    let code = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    // 0 is "none".
    (code != 0).then_some(KernelXid { address, instance, code })
}

impl Address {
    /// From `0000:3b:00` or `00000000:3B:00.0`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, function) = text.split_once('.').unwrap_or((text, "0"));
        let parts: Vec<&str> = text.split(':').collect();
        let [domain, bus, device] = parts[..] else { return None };
        let hex = |text: &str| {
            let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        hex(function)?;
        Some(Self {
            domain: hex(domain)?,
            bus: hex(bus)?.try_into().ok()?,
            device: hex(device)?.try_into().ok()?,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn xid(message: &str) -> Option<KernelXid> {
        parse(&format!("3,1234,5678901,-;{message}\n"))
    }

    fn found(bus: u8, instance: Option<u32>, code: u64) -> KernelXid {
        KernelXid { address: Address { domain: 0, bus, device: 0 }, instance, code }
    }

    #[test]
    fn every_form_that_drivers_have_written_is_read() {
        let forms = [
            (
                "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
                found(0x3b, None, 79),
            ),
            (
                "NVRM: Xid (PCI:0000:3b:00): 79, pid=1122, GPU has fallen off the bus.",
                found(0x3b, None, 79),
            ),
            ("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", found(0x3b, None, 79)),
            (
                "NVRM: Xid (0000:03:00): 31, Ch 00000010, engmask 00000101, intr 10000000",
                found(3, None, 31),
            ),
            (
                "NVRM: Xid (PCI:0000:36:00 GPU-I:05): 94, pid=7, name=python3, Contained",
                found(0x36, Some(5), 94),
            ),
            (
                "NVRM: Xid (PCI:0000:36:00 GPU-I:13 GPU-CI:00): 43, pid=7, name=x, Ch 1",
                found(0x36, Some(13), 43),
            ),
            (
                "NVRM: Xid (PCI:0000:18:00): 145, RLW_CTRL Nonfatal XC0 i0 Link 06 (0x1 0x2)",
                found(0x18, None, 145),
            ),
            (
                "NVRM: Xid (PCI:0000:18:00): 119, pid=3, name=a);b: 79, x, Timeout waiting for RPC",
                found(0x18, None, 119),
            ),
            ("NVRM: Xid (PCI:0000:18:00.0): 62, 2a3b c000", found(0x18, None, 62)),
            ("NVRM: Xid (PCI:0000:18:00): 154 GPU recovery action changed", found(0x18, None, 154)),
            ("NVRM: Xid (PCI:0000:18:00): 4711, news", found(0x18, None, 4711)),
        ];
        for (message, expected) in forms {
            assert_eq!(xid(message), Some(expected), "{message}");
        }
    }

    #[test]
    fn other_lines_are_nothing() {
        for message in [
            "NVRM: GPU at PCI:0000:3b:00: GPU-11111111-2222-3333-4444-555555555555",
            "NVRM: GPU Board Serial Number: 1",
            "NVRM: Xid (PCI:0000:3b:00)",
            "NVRM: Xid (PCI:0000:3b:00): ",
            "NVRM: Xid (PCI:0000:3b:00): 0, none",
            "NVRM: Xid (PCI:0000:3b:00): -79, x",
            "NVRM: Xid (PCI:0000:3b:00): 99999999999999999999999, x",
            "NVRM: Xid (PCI:0000:3b:00 GPU-I:x): 79, x",
            "NVRM: Xid (PCI:0000:3b): 79:",
            "NVRM: Xid (PCI:g000:3b:00): 79, x",
            "NVRM: Xid (PCI:0000:13b:00): 79, x",
            "somebody says NVRM: Xid (PCI:0000:3b:00): 79, x",
            "",
        ] {
            assert_eq!(xid(message), None, "{message}");
        }
    }

    #[test]
    fn what_processes_write_to_the_log_is_not_the_drivers() {
        let message = "NVRM: Xid (PCI:0000:3b:00): 79, x";
        assert!(parse(&format!("7,1,2,-;{message}")).is_some());
        assert!(parse(&format!("3,1,2,-,caller=T123;{message}")).is_some());
        for prefix in ["12,1,2,-;", "8,1,2,-;", ",1,2,-;", "x,1,2,-;", "-1,1,2,-;", ""] {
            assert_eq!(parse(&format!("{prefix}{message}")), None, "{prefix}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_fail(line in ".{0,200}") {
            let _ = parse(&line);
            let _ = parse(&format!("3,1,2,-;NVRM: Xid ({line}"));
            let _ = parse(&format!("3,1,2,-;NVRM: Xid (PCI:0000:3b:00{line}"));
        }

        #[test]
        fn what_the_driver_writes_is_read_back(
            domain in 0u32..=0xffff, bus: u8, device in 0u8..32, instance: Option<u8>,
            code in 1u64..1000, text in "[ -~]{0,100}",
        ) {
            let address = Address { domain, bus, device };
            let instance = instance.map(u32::from);
            let mig = instance.map(|id| format!(" GPU-I:{id:02}")).unwrap_or_default();
            let line = format!("NVRM: Xid (PCI:{address}{mig}): {code}, {text}");
            prop_assert_eq!(xid(&line), Some(KernelXid { address, instance, code }));
        }

        #[test]
        fn an_address_of_nvml_is_the_drivers(domain in 0u32..=0xffff, bus: u8, device in 0u8..32) {
            let address = Address { domain, bus, device };
            let nvml = format!("{domain:08X}:{bus:02X}:{device:02X}.0");
            prop_assert_eq!(Address::parse(&nvml), Some(address));
            prop_assert_eq!(Address::parse(&address.to_string()), Some(address));
        }
    }
}
