//! What users of devices spend, reading after reading: when it is charged, to whom, and how long
//! an account is kept.
#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes strings so")]

use expect_test::expect;
use nvml_exporter::attribution::Attribution;
use nvml_exporter::catalogue::Meter;
use nvml_exporter::usage::{By, KEPT};

use crate::attribution::{gpu, held, holding};
use crate::support::reading;
use crate::usage::{Pages, meter, only, shared};

const SPENT: &[&str] = &["nvml_pod_energy", "nvml_pod_gpu", "nvml_device_una"];

#[test]
fn accounts_begin_at_0_and_a_page_made_again_charges_nothing() {
    let mut pages = Pages::by(&[By::Pod]);
    let one = held(vec![holding("c", "main", gpu(0), None)]);
    let first = pages.page(0, vec![shared(50.0, vec![])], &one);
    expect![[r#"
        nvml_pod_energy_joules_total gpu=0 pod=c: 0
        nvml_pod_gpu_seconds_total gpu=0 pod=c: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=unread: 0
    "#]]
    .assert_eq(&only(&first, SPENT));
    let second = pages.page(10, vec![shared(250.0, vec![])], &one);
    expect![[r#"
        nvml_pod_energy_joules_total gpu=0 pod=c: 200
        nvml_pod_gpu_seconds_total gpu=0 pod=c: 10
        nvml_pod_gpu_busy_seconds_total gpu=0 pod=c: 9
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=unread: 0
    "#]]
    .assert_eq(&only(&second, SPENT));
    assert_eq!(pages.page(10, vec![shared(250.0, vec![])], &one), second);
}

#[test]
fn a_counter_that_began_anew_a_clock_set_back_and_a_gap() {
    let mut pages = Pages::by(&[By::Pod]);
    let one = held(vec![holding("c", "main", gpu(0), None)]);
    let mut spent =
        |seconds, energy| only(&pages.page(seconds, vec![shared(energy, vec![])], &one), SPENT);
    spent(100, 5000.0);
    // The driver was loaded again: the counter tells what was spent since.
    assert!(spent(110, 30.0).contains("nvml_pod_energy_joules_total gpu=0 pod=c: 30\n"));
    // A clock that is set back makes no time, and energy all the same.
    let back = spent(50, 40.0);
    assert!(back.contains("nvml_pod_energy_joules_total gpu=0 pod=c: 40\n"), "{back}");
    assert!(back.contains("nvml_pod_gpu_seconds_total gpu=0 pod=c: 10\n"), "{back}");
    // Nobody knows who held the GPU all the time that it was not read.
    let gap = spent(500, 940.0);
    assert!(gap.contains("nvml_pod_energy_joules_total gpu=0 pod=c: 40\n"), "{gap}");
    assert!(gap.contains("by=pod reason=unread: 900\n"), "{gap}");
    assert!(gap.contains("nvml_pod_gpu_seconds_total gpu=0 pod=c: 10\n"), "{gap}");
}

#[test]
fn a_board_without_an_energy_counter_is_taken_by_its_power() {
    let mut pages = Pages::by(&[By::Pod]);
    let one = held(vec![holding("c", "main", gpu(0), None)]);
    let watts = |watts| vec![reading(vec![meter(Meter::Power, watts)])];
    pages.page(0, watts(100.0), &one);
    let page = pages.page(10, watts(200.0), &one);
    expect![[r#"
        nvml_pod_energy_joules_total gpu=0 pod=c: 1500
        nvml_pod_gpu_seconds_total gpu=0 pod=c: 10
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=holders_unknown: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=unread: 0
    "#]]
    .assert_eq(&only(&page, SPENT));
    let mut pages = Pages::by(&[By::Pod]);
    pages.page(0, vec![reading(vec![])], &one);
    let page = pages.page(10, vec![reading(vec![])], &one);
    expect![[r#"
        nvml_pod_gpu_seconds_total gpu=0 pod=c: 10
    "#]]
    .assert_eq(&only(&page, SPENT));
}

#[test]
fn an_account_outlives_its_pod_for_a_while_and_goes_on_if_the_pod_comes_back() {
    let mut pages = Pages::by(&[By::Pod]);
    let (one, none) = (held(vec![holding("c", "main", gpu(0), None)]), held(vec![]));
    let mut energy = |seconds, joules, who: &Attribution| {
        only(&pages.page(seconds, vec![shared(joules, vec![])], who), &["nvml_pod_energy"])
    };
    energy(0, 0.0, &one);
    energy(10, 100.0, &one);
    let ended = energy(20, 300.0, &none);
    assert_eq!(ended, "nvml_pod_energy_joules_total gpu=0 pod=c: 100\n");
    assert_eq!(energy(30, 400.0, &one), "nvml_pod_energy_joules_total gpu=0 pod=c: 200\n");
    assert_eq!(energy(31 + KEPT.as_secs(), 500.0, &none), "");
    let again = energy(32 + KEPT.as_secs(), 600.0, &one);
    assert_eq!(again, "nvml_pod_energy_joules_total gpu=0 pod=c: 100\n");
}

#[test]
fn what_is_spent_while_the_kubelet_is_away_is_nobodys() {
    let mut pages = Pages::by(&[By::Pod]);
    let unknown = Attribution::default();
    pages.page(0, vec![shared(0.0, vec![])], &unknown);
    let page = pages.page(10, vec![shared(70.0, vec![])], &unknown);
    expect![[r#"
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=idle: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=not_divisible: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=other_processes: 0
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=holders_unknown: 70
        nvml_device_unattributed_energy_joules_total gpu=0 by=pod reason=unread: 0
    "#]]
    .assert_eq(&only(&page, SPENT));
}
