//! Where MIG instances lie: asked on request, and once.

use nvml_exporter::nvml::Code;
use nvml_exporter::sampler::snapshot::{GpuReading, Placement};

use crate::support::bench::{Bench, times};

const CALLS: [&str; 2] = ["nvmlDeviceGetGpuInstanceById", "nvmlGpuInstanceGetInfo"];

/// Profile id, first slice, slices.
type Place = (u32, u32, u32);

/// Profile and placement of each instance.
fn placements(reading: &GpuReading) -> Vec<(&str, Option<Place>)> {
    let place = |place: Placement| (place.profile_id, place.start, place.size);
    let identities = reading.instances.iter().map(|instance| &instance.identity);
    identities.map(|identity| (identity.profile.as_str(), identity.placement.map(place))).collect()
}

#[test]
fn instances_tell_their_profile_and_place() {
    let test = "placements::instances_tell_their_profile_and_place";
    let Some(bench) = Bench::of(test, "h200-mig-and-whole", &[]) else { return };
    let reading = bench.gpu(2, |request| request.placements = true).reading();
    let expected = [
        ("3g.71gb", Some((9, 4, 4))),
        ("2g.35gb", Some((14, 0, 2))),
        ("1g.18gb", Some((19, 2, 1))),
        ("1g.18gb+me", Some((20, 3, 1))),
    ];
    assert_eq!(placements(&reading), expected);
    // Two compute instances share one place.
    let reading = bench.gpu(3, |request| request.placements = true).reading();
    assert_eq!(placements(&reading)[0], ("3g.71gb", Some((9, 4, 4))));
}

#[test]
fn placements_are_asked_on_request_and_once_an_instance() {
    let test = "placements::placements_are_asked_on_request_and_once_an_instance";
    let Some(bench) = Bench::of(test, "a100-mig-mixed", &[]) else { return };
    let (pass, calls) = bench.gpu(0, |_| ()).pass();
    assert!(placements(&pass.outcome.unwrap()).iter().all(|(_, place)| place.is_none()));
    assert!(CALLS.iter().all(|call| times(&calls, call) == 0), "{calls:?}");

    let mut gpu = bench.gpu(0, |request| request.placements = true);
    let (first, calls) = gpu.pass();
    let places = [
        ("3g.40gb", Some((9, 4, 4))),
        ("2g.20gb", Some((14, 0, 2))),
        ("1g.10gb", Some((19, 2, 1))),
    ];
    assert_eq!(placements(first.outcome.as_ref().unwrap()), places);
    assert!(CALLS.iter().all(|call| times(&calls, call) == 3), "{calls:?}");
    let (second, calls) = gpu.pass();
    assert_eq!(placements(second.outcome.as_ref().unwrap()), places);
    assert!(CALLS.iter().all(|call| times(&calls, call) == 0), "{calls:?}");

    bench.control("gpu 0 mig 4g.40gb,1g.10gb,2g.20gb");
    let (third, calls) = gpu.pass();
    let places = [
        ("4g.40gb", Some((5, 0, 4))),
        ("2g.20gb", Some((14, 4, 2))),
        ("1g.10gb", Some((19, 6, 1))),
    ];
    assert_eq!(placements(third.outcome.as_ref().unwrap()), places);
    assert_eq!(times(&calls, CALLS[0]), 3);

    let (whole, calls) = bench.gpu(2, |request| request.placements = true).pass();
    assert!(whole.outcome.unwrap().instances.is_empty());
    assert_eq!(times(&calls, CALLS[0]), 0);
}

#[test]
fn a_driver_that_will_not_tell_is_asked_once_and_is_no_failure() {
    let test = "placements::a_driver_that_will_not_tell_is_asked_once_and_is_no_failure";
    let Some(bench) = Bench::of(test, "a100-mig-mixed", &[]) else { return };
    for code in ["NO_PERMISSION", "NOT_SUPPORTED"] {
        bench.control(&format!("gpu 1 error nvmlDeviceGetGpuInstanceById {code}"));
        let mut gpu = bench.gpu(1, |request| request.placements = true);
        for asked in [7, 0] {
            let (pass, calls) = gpu.pass();
            assert_eq!(pass.errors, [], "{code}");
            let reading = pass.outcome.unwrap();
            assert_eq!(placements(&reading), [("1g.10gb", None); 7], "{code}");
            assert_eq!(times(&calls, CALLS[0]), asked, "{code}");
        }
    }
    bench.control("gpu 1 error nvmlDeviceGetGpuInstanceById TIMEOUT");
    let mut gpu = bench.gpu(1, |request| request.placements = true);
    let (pass, _) = gpu.pass();
    assert_eq!(pass.errors, [(CALLS[0], Code::TIMEOUT); 7]);
    assert_eq!(placements(&pass.outcome.unwrap()), [("1g.10gb", None); 7]);
    bench.control("gpu 1 error * clear");
    assert!(placements(&gpu.reading()).iter().all(|(_, place)| place.is_some()));
}

#[test]
fn a_driver_without_the_function_has_no_placements() {
    let test = "placements::a_driver_without_the_function_has_no_placements";
    let hidden = [("NVML_SIM_HIDE", "nvmlGpuInstanceGetInfo")];
    let Some(bench) = Bench::of(test, "a100-mig-mixed", &hidden) else { return };
    let reading = bench.gpu(0, |request| request.placements = true).reading();
    assert!(placements(&reading).iter().all(|(_, place)| place.is_none()));
}
