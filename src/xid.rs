//! The XIDs: what a code means, how bad it is, and what to do.

#[cfg(test)]
mod docs;
mod table;

/// The text for a code outside the table.
pub const UNKNOWN: &str = "Unknown Error";

/// One XID of NVIDIA's catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The number in the kernel log and in NVML's event.
    pub code: u16,
    /// A few words of our own.
    pub name: &'static str,
    /// What it is about.
    pub class: Class,
    /// Whether somebody has to look, and when.
    pub severity: Severity,
    /// What to do, in this order until it helps. Never empty.
    pub steps: &'static [Step],
}

impl Xid {
    const fn new(
        code: u16,
        name: &'static str,
        class: Class,
        severity: Severity,
        steps: &'static [Step],
    ) -> Self {
        Self { code, name, class, severity, steps }
    }

    /// What to do first.
    #[must_use]
    pub fn action(&self) -> Step {
        self.steps.first().copied().unwrap_or(Step::ContactSupport)
    }
}

/// Makes an enumeration whose variants have a name as a label's value.
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)+ }

        impl $name {
            /// Every one, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// As a label's value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// What it means, in a sentence.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }
        }
    };
}

named! {
    /// What an XID is about.
    Class {
        /// The job's fault, until it repeats on one GPU with different jobs.
        Application = "application",
        /// The driver or the firmware.
        Driver = "driver",
        /// The board.
        Hardware = "hardware",
        /// Nothing is wrong.
        Informational = "informational",
        /// Of old boards and drivers, or reserved.
        Legacy = "legacy",
        /// The GPU's memory: ECC, row remapping, page retirement.
        Memory = "memory",
        /// The links between GPUs.
        Nvlink = "nvlink",
        /// vGPU.
        Virtualization = "virtualization",
    }
}

named! {
    /// Whether somebody has to look, and when.
    Severity {
        /// The first thing to do is a reset of the GPU, the node or the virtual machine.
        Critical = "critical",
        /// Somebody should look in working hours.
        Warning = "warning",
        /// Nothing to do, or the job's owner has to.
        Info = "info",
    }
}

named! {
    /// One thing to do about an XID.
    Step {
        /// Look for the mistake in the application.
        CheckApp = "check_app",
        /// Check the `NVLink` fabric and its switches.
        CheckFabric = "check_fabric",
        /// Check seating, cables and power.
        CheckMechanical = "check_mechanical",
        /// Check the `NVLink` named in the kernel log.
        CheckNvlink = "check_nvlink",
        /// Check the unified memory driver's messages beside it.
        CheckUvm = "check_uvm",
        /// Ask NVIDIA or the vendor.
        ContactSupport = "contact_support",
        /// Read the sub-code in the kernel log: it decides.
        DecodeSubcode = "decode_subcode",
        /// Take work off the GPU or node.
        Drain = "drain",
        /// Do what the kernel log's message names.
        FollowMessage = "follow_message",
        /// Look for the XID before it and act on that.
        FollowOtherXid = "follow_other_xid",
        /// Nothing.
        Ignore = "ignore",
        /// Reset the GPU.
        ResetGpu = "reset_gpu",
        /// Reset the GPU at the next opportunity.
        ResetGpuWhenConvenient = "reset_gpu_when_convenient",
        /// Start the application again.
        RestartApp = "restart_app",
        /// Restart the fabric manager.
        RestartFabricManager = "restart_fabric_manager",
        /// Reboot the node.
        RestartNode = "restart_node",
        /// Restart the virtual machine.
        RestartVm = "restart_vm",
        /// Have the board replaced, if it comes back.
        Rma = "rma",
        /// Run the field diagnostics or dcgmi diag.
        RunDiag = "run_diag",
        /// Update the driver or firmware.
        UpdateSoftware = "update_software",
    }
}

/// All that are known, by code.
#[must_use]
pub const fn all() -> &'static [Xid] {
    table::TABLE
}

/// The XID of a code, if it is known.
#[must_use]
pub fn find(code: u64) -> Option<&'static Xid> {
    let code = u16::try_from(code).ok()?;
    let at = table::TABLE.binary_search_by_key(&code, |xid| xid.code).ok()?;
    Some(&table::TABLE[at])
}

/// A short English text for an XID; 0 is "no XID yet".
#[must_use]
pub fn meaning(code: u64) -> &'static str {
    if code == 0 { "No Error" } else { find(code).map_or(UNKNOWN, |xid| xid.name) }
}

/// The codes that alerts select: what is critical or a warning.
pub fn watched() -> impl Iterator<Item = u64> {
    all().iter().filter(|xid| xid.severity != Severity::Info).map(|xid| u64::from(xid.code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_own_text_and_others_are_unknown() {
        assert_eq!(meaning(0), "No Error");
        assert_eq!(meaning(79), "GPU fell off the PCIe bus");
        assert_eq!(meaning(173), "fatal chip-to-chip (C2C) link failure");
        assert_eq!(meaning(174), UNKNOWN);
        assert_eq!(meaning(u64::MAX), UNKNOWN);
    }

    #[test]
    fn each_code_from_1_to_173_is_told_once_with_something_to_do() {
        assert!(all().iter().map(|xid| xid.code).eq(1..=173));
        assert!(all().iter().all(|xid| !xid.steps.is_empty()));
    }

    #[test]
    fn every_text_fits_a_label_and_its_line() {
        for Xid { name, .. } in all() {
            assert!(!name.is_empty() && name.len() < 110 && !name.contains(['"', '\\', '\n']));
        }
    }

    #[test]
    fn what_is_bad_is_watched_and_what_applications_do_is_not() {
        let watched: Vec<u64> = watched().collect();
        assert!([48, 62, 79, 94, 95, 119, 120, 145].iter().all(|code| watched.contains(code)));
        assert!([13, 31, 43, 45, 63].iter().all(|code| !watched.contains(code)));
    }

    #[test]
    fn a_sentence_says_what_to_do() {
        assert_eq!(Step::ResetGpu.sentence(), "Reset the GPU.");
        assert!(Step::ALL.iter().all(|step| step.sentence().ends_with('.')));
    }
}
