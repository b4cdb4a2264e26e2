//! Software licences of the board.

use nvml_wrapper_sys::bindings::{
    nvmlGridLicensableFeature_t, nvmlGridLicensableFeatures_t, nvmlGridLicenseExpiry_t,
};

use crate::call::device_api;
use crate::device::Device;
use crate::ffi::{Out, chars};

/// The head of the struct, which all its versions share: whether licences are a thing at all, and
/// how many features follow.
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    supported: i32,
    count: u32,
}

/// Compute boards could run a virtual workstation; none of them does here.
fn licensable(device: &Device<'_>) -> bool {
    !device.model.display
}

device_api! {
    Gpu nvmlDeviceGetGridLicensableFeatures_v4(device, features: Out<nvmlGridLicensableFeatures_t>) {
        let expiry = nvmlGridLicenseExpiry_t {
            year: 0, month: 0, day: 0, hour: 0, min: 0, sec: 0, status: 3,
        };
        let feature = |code, name: &str| nvmlGridLicensableFeature_t {
            featureCode: code,
            featureState: 0,
            licenseInfo: chars(""),
            productName: chars(name),
            featureEnabled: 0,
            licenseExpiry: expiry,
        };
        let there = u32::from(licensable(device));
        features.put(nvmlGridLicensableFeatures_t {
            isGridLicenseSupported: there.cast_signed(),
            licensableFeaturesCount: there,
            gridLicensableFeatures: [
                feature(2, "NVIDIA RTX Virtual Workstation"), feature(0, ""), feature(0, ""),
            ],
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
