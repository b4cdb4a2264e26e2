//! Device names of NVIDIA's DRA driver, `gpu.nvidia.com` (k8s-dra-driver-gpu).
//!
//! Its names say which device it is without a look into the API server: the number in them is the
//! device's minor number, and a MIG device is named by where it lies on the GPU.

use super::Target;
use super::device_id::number;

/// The driver whose device names are known.
pub const DRIVER: &str = "gpu.nvidia.com";

/// Reads a device's name; `None` if the driver is not known to give such names.
///
/// | Name | Is |
/// |---|---|
/// | `gpu-<minor>` | a GPU |
/// | `gpu-<minor>-mig-<profile>-<profile id>-<start>` | a MIG device, since release 25.12 |
/// | `gpu-<minor>-mig-<profile id>-<start>-<size>` | the same, before |
/// | `gpu-vfio-<index>` | a GPU passed through to a virtual machine |
#[must_use]
pub fn dra_target(device_name: &str) -> Option<Target> {
    let rest = device_name.strip_prefix("gpu-")?;
    if let Some(index) = rest.strip_prefix("vfio-") {
        return Some(Target::Vfio(number(index)?));
    }
    let Some((minor, place)) = rest.split_once("-mig-") else {
        return Some(Target::Minor(number(rest)?));
    };
    let minor = number(minor)?;
    let mut parts = place.rsplitn(3, '-');
    let (last, middle, first) = (parts.next()?, parts.next()?, parts.next()?);
    // Three numbers in the old form; a profile always has a letter (`1g`).
    if let Some(profile_id) = number(first) {
        number(last)?;
        let start = number(middle)?;
        return Some(Target::Placed { minor, profile_id, start, profile: String::new() });
    }
    let in_profile = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let looks_like_one = first.bytes().any(|byte| byte.is_ascii_lowercase())
        && first.bytes().all(in_profile)
        && first.starts_with(|sign: char| sign.is_ascii_digit());
    let (profile_id, start) = (number(middle)?, number(last)?);
    looks_like_one.then(|| Target::Placed { minor, profile_id, start, profile: first.to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(minor: u32, profile_id: u32, start: u32, profile: &str) -> Target {
        Target::Placed { minor, profile_id, start, profile: profile.to_owned() }
    }

    #[test]
    fn every_known_name_is_read() {
        for (name, target) in [
            ("gpu-0", Target::Minor(0)),
            ("gpu-12", Target::Minor(12)),
            ("gpu-0-mig-1g18gb-19-0", placed(0, 19, 0, "1g18gb")),
            ("gpu-3-mig-1g18gb-me-20-4", placed(3, 20, 4, "1g18gb-me")),
            ("gpu-3-mig-1c-2g35gb-14-2", placed(3, 14, 2, "1c-2g35gb")),
            ("gpu-1-mig-19-4-1", placed(1, 19, 4, "")),
            ("gpu-vfio-2", Target::Vfio(2)),
        ] {
            assert_eq!(dra_target(name), Some(target), "{name}");
        }
    }

    #[test]
    fn other_names_are_not_guessed_at() {
        for name in [
            "",
            "gpu-",
            "gpu",
            "gpu-x",
            "gpu-01",
            "GPU-0",
            "mig-0",
            "gpu-0-1",
            "gpu-vfio-",
            "gpu-vfio-x",
            "gpu-0-mig-",
            "gpu-0-mig-1g18gb",
            "gpu-0-mig-1g18gb-19",
            "gpu-0-mig-1g18gb-19-x",
            "gpu-0-mig-1g18gb-x-0",
            "gpu-0-mig-19-0",
            "gpu-0-mig-19-0-x",
            "gpu-0-mig-1G18GB-19-0",
            "gpu-0-mig-other-19-0",
            "gpu-x-mig-19-0-1",
            "gpu-0-mig-99999999999-0-1",
        ] {
            assert_eq!(dra_target(name), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_written_name_is_read_back(
            minor in any::<u32>(),
            profile in "[1-7]g[1-9][0-9]{0,2}gb(-me|-gfx|-me-all)?",
            id in any::<u32>(),
            start in any::<u32>(),
            size in 1u32..9,
        ) {
            let name = format!("gpu-{minor}");
            prop_assert_eq!(dra_target(&name), Some(Target::Minor(minor)));
            let name = format!("gpu-{minor}-mig-{profile}-{id}-{start}");
            prop_assert_eq!(dra_target(&name), Some(placed(minor, id, start, &profile)));
            let name = format!("gpu-{minor}-mig-{id}-{start}-{size}");
            prop_assert_eq!(dra_target(&name), Some(placed(minor, id, start, "")));
        }

        #[test]
        fn no_name_makes_the_parser_panic(text in "(gpu-)?[0-9]{0,3}(-mig-|vfio-)?.{0,20}") {
            let _ = dra_target(&text);
        }
    }
}
