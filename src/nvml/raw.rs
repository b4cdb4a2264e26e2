//! Calls through nvml-wrapper's symbol table, for what the wrapper lacks or gets wrong.

pub(super) use super::raw_handle::Handle;

/// Calls one NVML symbol; a symbol that the loaded library lacks is `FUNCTION_NOT_FOUND`, as
/// the generated methods of the symbol table would panic.
///
/// The caller vouches that every pointer argument is valid for the call.
macro_rules! nvml_call {
    ($nvml:expr, $symbol:ident($($argument:expr),* $(,)?)) => {
        match $nvml.lib().$symbol.as_ref() {
            // SAFETY: the signature comes from nvml.h through nvml-wrapper-sys; pointers are to
            // live, zeroed values of the types that it names, and the session outlives the call.
            Ok(function) => $crate::nvml::Code::check(unsafe { function($($argument),*) }),
            Err(_) => Err($crate::nvml::Code::FUNCTION_NOT_FOUND),
        }
    };
}
pub(super) use nvml_call;

/// The `version` word of a versioned struct: its size and version number.
pub(super) fn version_of<T>(version: u32) -> u32 {
    u32::try_from(size_of::<T>()).unwrap_or(0) | (version << 24)
}

/// A zeroed C struct, as NVML wants its outputs: some calls answer success and leave them alone.
pub(super) fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` is only implemented for C structs that are valid when all bytes are zero.
    unsafe { std::mem::zeroed() }
}

/// C structs for which all zeros is a valid value.
///
/// # Safety
/// Implementors hold only integers, floats, raw pointers and arrays or unions of these.
pub(super) unsafe trait Plain {}

macro_rules! plain {
    ($($name:ident),* $(,)?) => {
        $(
            // SAFETY: bindgen's struct of integers, floats, raw pointers and arrays of these.
            unsafe impl Plain for nvml_wrapper_sys::bindings::$name {}
        )*
    };
}

plain!(
    nvmlFieldValue_st,
    nvmlMemory_v2_st,
    nvmlMemory_st,
    nvmlGpuFabricInfo_v2_t,
    nvmlGpuFabricInfo_v3_t,
    nvmlEccSramErrorStatus_v1_t,
    nvmlRowRemapperHistogramValues_st,
    nvmlPlatformInfo_v2_t,
    nvmlMarginTemperature_v1_t,
    nvmlGridLicensableFeatures_st,
    nvmlEventData_st,
    nvmlPciInfo_st,
    nvmlGpmSupport_t,
    nvmlGpmMetric_t,
    nvmlConfComputeSystemState_st,
    nvmlDeviceAttributes_st,
    nvmlUtilization_st,
    nvmlGpuInstanceInfo_st,
    nvmlProcessInfo_v1_st,
    nvmlProcessInfo_v2_st,
    nvmlProcessUtilizationSample_st,
    nvmlProcessUtilizationInfo_v1_t,
    nvmlAccountingStats_st,
);

// SAFETY: a number.
unsafe impl Plain for u32 {}

/// The text in a C buffer, up to its NUL; what is not UTF-8 is replaced.
pub(super) fn text(buffer: &[std::ffi::c_char]) -> String {
    let bytes: Vec<u8> =
        buffer.iter().take_while(|byte| **byte != 0).map(|byte| byte.cast_unsigned()).collect();
    String::from_utf8_lossy(&bytes).trim().to_owned()
}
