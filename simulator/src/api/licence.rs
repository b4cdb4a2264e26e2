//! Software licences of the board.

use nvml_wrapper_sys::bindings::{
    nvmlGridLicensableFeature_t, nvmlGridLicensableFeatures_t, nvmlGridLicenseExpiry_t,
};

use crate::call::device_api;
use crate::ffi::{Out, chars};

/// The head of the struct, which all its versions share: whether licences are a thing at all, and
/// how many features follow.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    supported: i32,
    count: u32,
}

device_api! {
    Gpu nvmlDeviceGetGridLicensableFeatures_v4(_device, features: Out<nvmlGridLicensableFeatures_t>) {
        let no_expiry = nvmlGridLicenseExpiry_t {
            year: 0, month: 0, day: 0, hour: 0, min: 0, sec: 0, status: 3,
        };
        let nothing = nvmlGridLicensableFeature_t {
            featureCode: 0,
            featureState: 0,
            licenseInfo: chars(""),
            productName: chars(""),
            featureEnabled: 0,
            licenseExpiry: no_expiry,
        };
        // Outside a virtual machine no board takes a licence.
        features.put(nvmlGridLicensableFeatures_t {
            isGridLicenseSupported: 0,
            licensableFeaturesCount: 0,
            gridLicensableFeatures: [nothing; 3],
        })
    }

    Gpu nvmlDeviceGetGridLicensableFeatures_v3(_device, features: Out<Head>) {
        features.put(Head { supported: 0, count: 0 })
    }

    Gpu nvmlDeviceGetGridLicensableFeatures_v2(_device, features: Out<Head>) {
        features.put(Head { supported: 0, count: 0 })
    }

    Gpu nvmlDeviceGetGridLicensableFeatures(_device, features: Out<Head>) {
        features.put(Head { supported: 0, count: 0 })
    }
}
