//! NVML's return codes and what the exporter does about each (`nvmlReturn_t`).

use nvml_wrapper::error::NvmlError;

/// A return code other than success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(u32);

/// What a code asks of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// This device or driver does not give it: no series, and not asked again for a while.
    Unsupported,
    /// The device or field handle means nothing (any more): look the devices up again.
    Stale,
    /// The GPU fell off the bus.
    Lost,
    /// The GPU works again only after a reset.
    ResetRequired,
    /// NVML itself is gone: shut down, load again.
    Session,
    /// No value this time.
    Transient,
}

/// Names by number; the index is the code.
const NAMES: &[&str] = &[
    "SUCCESS",
    "UNINITIALIZED",
    "INVALID_ARGUMENT",
    "NOT_SUPPORTED",
    "NO_PERMISSION",
    "ALREADY_INITIALIZED",
    "NOT_FOUND",
    "INSUFFICIENT_SIZE",
    "INSUFFICIENT_POWER",
    "DRIVER_NOT_LOADED",
    "TIMEOUT",
    "IRQ_ISSUE",
    "LIBRARY_NOT_FOUND",
    "FUNCTION_NOT_FOUND",
    "CORRUPTED_INFOROM",
    "GPU_IS_LOST",
    "RESET_REQUIRED",
    "OPERATING_SYSTEM",
    "LIB_RM_VERSION_MISMATCH",
    "IN_USE",
    "MEMORY",
    "NO_DATA",
    "VGPU_ECC_NOT_SUPPORTED",
    "INSUFFICIENT_RESOURCES",
    "FREQ_NOT_SUPPORTED",
    "ARGUMENT_VERSION_MISMATCH",
    "DEPRECATED",
    "NOT_READY",
    "GPU_NOT_FOUND",
    "INVALID_STATE",
];

impl Code {
    /// `NVML_ERROR_UNINITIALIZED`.
    pub const UNINITIALIZED: Self = Self(1);
    /// `NVML_ERROR_INVALID_ARGUMENT`.
    pub const INVALID_ARGUMENT: Self = Self(2);
    /// `NVML_ERROR_NOT_SUPPORTED`.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// `NVML_ERROR_NO_PERMISSION`.
    pub const NO_PERMISSION: Self = Self(4);
    /// `NVML_ERROR_NOT_FOUND`.
    pub const NOT_FOUND: Self = Self(6);
    /// `NVML_ERROR_INSUFFICIENT_SIZE`.
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    /// `NVML_ERROR_DRIVER_NOT_LOADED`.
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    /// `NVML_ERROR_TIMEOUT`.
    pub const TIMEOUT: Self = Self(10);
    /// `NVML_ERROR_LIBRARY_NOT_FOUND`.
    pub const LIBRARY_NOT_FOUND: Self = Self(12);
    /// `NVML_ERROR_FUNCTION_NOT_FOUND`; also a symbol that the loaded library lacks.
    pub const FUNCTION_NOT_FOUND: Self = Self(13);
    /// `NVML_ERROR_CORRUPTED_INFOROM`.
    pub const CORRUPTED_INFOROM: Self = Self(14);
    /// `NVML_ERROR_GPU_IS_LOST`.
    pub const GPU_IS_LOST: Self = Self(15);
    /// `NVML_ERROR_RESET_REQUIRED`.
    pub const RESET_REQUIRED: Self = Self(16);
    /// `NVML_ERROR_LIB_RM_VERSION_MISMATCH`.
    pub const LIB_RM_VERSION_MISMATCH: Self = Self(18);
    /// `NVML_ERROR_ARGUMENT_VERSION_MISMATCH`.
    pub const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    /// `NVML_ERROR_DEPRECATED`.
    pub const DEPRECATED: Self = Self(26);
    /// `NVML_ERROR_GPU_NOT_FOUND`.
    pub const GPU_NOT_FOUND: Self = Self(28);
    /// `NVML_ERROR_UNKNOWN`.
    pub const UNKNOWN: Self = Self(999);

    /// `Ok` for `NVML_SUCCESS`.
    pub fn check(code: u32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self(code)) }
    }

    /// NVML's name without its prefix; a code that this build does not know is `UNKNOWN_CODE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::UNKNOWN => "UNKNOWN",
            Self(code) => usize::try_from(code)
                .ok()
                .and_then(|index| NAMES.get(index).copied())
                .unwrap_or("UNKNOWN_CODE"),
        }
    }

    /// What to do about it (field-map section 9).
    #[must_use]
    pub fn meaning(self) -> Meaning {
        match self {
            Self::NOT_SUPPORTED
            | Self::NO_PERMISSION
            | Self::FUNCTION_NOT_FOUND
            | Self::LIBRARY_NOT_FOUND
            | Self::ARGUMENT_VERSION_MISMATCH
            | Self::DEPRECATED => Meaning::Unsupported,
            Self::INVALID_ARGUMENT | Self::NOT_FOUND => Meaning::Stale,
            Self::GPU_IS_LOST => Meaning::Lost,
            Self::RESET_REQUIRED => Meaning::ResetRequired,
            Self::UNINITIALIZED | Self::DRIVER_NOT_LOADED | Self::LIB_RM_VERSION_MISMATCH => {
                Meaning::Session
            }
            Self(_) => Meaning::Transient,
        }
    }
}

impl From<NvmlError> for Code {
    fn from(error: NvmlError) -> Self {
        match error {
            NvmlError::Uninitialized => Self::UNINITIALIZED,
            NvmlError::InvalidArg => Self::INVALID_ARGUMENT,
            NvmlError::NotSupported => Self::NOT_SUPPORTED,
            NvmlError::NoPermission => Self::NO_PERMISSION,
            NvmlError::NotFound => Self::NOT_FOUND,
            NvmlError::InsufficientSize(_) => Self::INSUFFICIENT_SIZE,
            NvmlError::InsufficientPower => Self(8),
            NvmlError::DriverNotLoaded => Self::DRIVER_NOT_LOADED,
            NvmlError::Timeout => Self::TIMEOUT,
            NvmlError::IrqIssue => Self(11),
            NvmlError::LibraryNotFound | NvmlError::LibloadingError(_) => Self::LIBRARY_NOT_FOUND,
            NvmlError::FunctionNotFound | NvmlError::FailedToLoadSymbol(_) => {
                Self::FUNCTION_NOT_FOUND
            }
            NvmlError::CorruptedInfoROM => Self::CORRUPTED_INFOROM,
            NvmlError::GpuLost => Self::GPU_IS_LOST,
            NvmlError::ResetRequired => Self::RESET_REQUIRED,
            NvmlError::OperatingSystem => Self(17),
            NvmlError::LibRmVersionMismatch => Self::LIB_RM_VERSION_MISMATCH,
            NvmlError::InUse => Self(19),
            NvmlError::InsufficientMemory => Self(20),
            NvmlError::NoData => Self(21),
            // The wrapper passes on codes that it has no name for.
            NvmlError::UnexpectedVariant(code) if code > 22 => Self(code),
            _ => Self::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, Meaning};

    #[test]
    fn codes_are_named_as_nvml_names_them() {
        for (code, name) in [
            (1, "UNINITIALIZED"),
            (15, "GPU_IS_LOST"),
            (18, "LIB_RM_VERSION_MISMATCH"),
            (25, "ARGUMENT_VERSION_MISMATCH"),
            (29, "INVALID_STATE"),
            (77, "UNKNOWN_CODE"),
            (999, "UNKNOWN"),
        ] {
            assert_eq!(Code::check(code).map_err(Code::name), Err(name));
        }
        assert_eq!(Code::check(0), Ok(()));
    }

    #[test]
    fn a_missing_symbol_is_unsupported() {
        let error = nvml_wrapper::error::NvmlError::FailedToLoadSymbol(String::new());
        assert_eq!(Code::from(error).meaning(), Meaning::Unsupported);
    }
}
