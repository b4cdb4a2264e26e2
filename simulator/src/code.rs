//! The return codes of NVML, under their short names: those the simulator returns of its own, and
//! those that only a control file makes it return.

use std::ffi::CStr;

use nvml_wrapper_sys::bindings as sys;

/// `nvmlReturn_t`.
pub(crate) type Code = sys::nvmlReturn_t;

/// What a call body answers: nothing to add, or the code to return.
pub(crate) type Answer<T = ()> = Result<T, Code>;

macro_rules! codes {
    (
        returned { $($name:ident = $value:literal, $text:literal;)* }
        injected { $($other:ident = $number:literal, $words:literal;)* }
    ) => {
        $(pub(crate) const $name: Code = $value;)*

        const ALL: &[(Code, &str, &CStr)] = &[
            $(($value, stringify!($name), $text),)*
            $(($number, stringify!($other), $words),)*
        ];
    };
}

codes! {
    returned {
        SUCCESS = 0, c"Success";
        UNINITIALIZED = 1, c"Uninitialized";
        INVALID_ARGUMENT = 2, c"Invalid Argument";
        NOT_SUPPORTED = 3, c"Not Supported";
        NO_PERMISSION = 4, c"Insufficient Permissions";
        NOT_FOUND = 6, c"Not Found";
        INSUFFICIENT_SIZE = 7, c"Insufficient Size";
        DRIVER_NOT_LOADED = 9, c"Driver Not Loaded";
        TIMEOUT = 10, c"Timeout";
        CORRUPTED_INFOROM = 14, c"Corrupted infoROM";
        GPU_IS_LOST = 15, c"GPU is lost";
        LIB_RM_VERSION_MISMATCH = 18, c"Driver/library version mismatch";
        IN_USE = 19, c"In use by another client";
        ARGUMENT_VERSION_MISMATCH = 25, c"Argument version mismatch";
        UNKNOWN = 999, c"Unknown Error";
    }
    injected {
        ALREADY_INITIALIZED = 5, c"Already Initialized";
        INSUFFICIENT_POWER = 8, c"Insufficient External Power";
        IRQ_ISSUE = 11, c"Interrupt Request Issue";
        LIBRARY_NOT_FOUND = 12, c"NVML Shared Library Not Found";
        FUNCTION_NOT_FOUND = 13, c"Function Not Found";
        RESET_REQUIRED = 16, c"GPU requires reset";
        OPERATING_SYSTEM = 17, c"The operating system has blocked the request";
        MEMORY = 20, c"Insufficient Memory";
        NO_DATA = 21, c"No data";
        VGPU_ECC_NOT_SUPPORTED = 22, c"vGPU with ECC not supported";
        INSUFFICIENT_RESOURCES = 23, c"Insufficient Resources";
        FREQ_NOT_SUPPORTED = 24, c"Requested frequency not supported";
        DEPRECATED = 26, c"Function deprecated";
        NOT_READY = 27, c"Not ready";
        GPU_NOT_FOUND = 28, c"No GPUs found";
        INVALID_STATE = 29, c"Resource is not in a valid state";
        RESET_TYPE_NOT_SUPPORTED = 30, c"Reset type not supported";
    }
}

/// The text `nvmlErrorString` gives for a code.
pub(crate) fn text(code: Code) -> &'static CStr {
    ALL.iter().find(|(c, ..)| *c == code).map_or(c"Unknown Error", |(_, _, text)| text)
}

/// Reads a code as a control file may spell it: `15`, `GPU_IS_LOST`, `NVML_ERROR_GPU_IS_LOST`.
pub(crate) fn parse(word: &str) -> Option<Code> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    let upper = word.to_ascii_uppercase();
    let name = upper.trim_start_matches("NVML_").trim_start_matches("ERROR_");
    ALL.iter().find(|(_, n, _)| *n == name).map(|(code, ..)| *code)
}
