//! Pods on the page: the real binary on the simulator, beside a kubelet that says what the test
//! wants. Cases 62 to 84 of dcgm-exporter's contract as a user sees them.

use nvml_exporter::attribution::kubelet::messages::PodResources;
use tonic::Code;

use crate::support::kubelet::{Kubelet, Mood, claiming, device, pod};
use crate::support::pods::{GPU, TEMP, beside_a_kubelet, pods_of, until_pods, uuids};
use crate::support::{Page, Setup};

#[test]
fn a_device_goes_from_pod_to_pod_and_never_to_both() {
    let (setup, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.ready();
    let uuids = uuids(&exporter.scrape());
    kubelet.lists(vec![pod("a", &[(GPU, &uuids[0]), (GPU, &uuids[1])]), pod("cpu-only", &[])]);
    kubelet.can_hand_out(uuids.iter().map(|uuid| device(GPU, uuid)).collect());
    let page = until_pods(&exporter, "0", &["a"]);
    let labels = [("gpu", "0"), ("namespace", "ml"), ("container", "main"), ("pod", "a")];
    assert!(page.sample("DCGM_FI_DEV_FB_USED", &labels).is_some());
    assert_eq!(pods_of(&page, "1", None), ["a"]);
    assert_eq!(pods_of(&page, "2", None), [""]);
    assert_eq!(page.value("nvml_node_allocatable_devices", &[("resource", GPU)]), Some(8.0));
    assert_eq!(page.value("nvml_node_free_devices", &[("resource", GPU)]), Some(6.0));
    assert_eq!(page.value("nvml_device_allocated", &[("gpu", "0")]), Some(1.0));
    assert_eq!(page.value("nvml_device_allocated", &[("gpu", "7")]), Some(0.0));
    assert_eq!(page.value("nvml_exporter_pod_resources_up", &[]), Some(1.0));

    // An old kubelet goes on listing a pod that has ended.
    kubelet.lists(vec![pod("a", &[(GPU, &uuids[0])]), pod("b", &[(GPU, &uuids[0])])]);
    exporter.until("pod b", |page| {
        let pods = pods_of(page, "0", None);
        assert!(pods == ["a"] || pods == ["b"], "{pods:?}");
        pods == ["b"]
    });
    kubelet.lists(Vec::new());
    until_pods(&exporter, "0", &[""]);
}

#[test]
fn case_62_and_66_each_form_of_id_names_its_device() {
    let (setup, path) = beside_a_kubelet("h200-mig-and-whole");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.ready();
    let page = exporter.scrape();
    let mig = page.samples("nvml_mig_instance_info").next().unwrap();
    let (gpu, id) = (mig.label("gpu").unwrap(), mig.label("GPU_I_ID").unwrap());
    let compute = mig.label("compute_instance").unwrap();
    let parent = mig.label("UUID").unwrap();
    let minor = |gpu: &str| {
        let info = page.sample("nvml_device_info", &[("gpu", gpu)]).unwrap();
        info.label("minor_number").unwrap().to_owned()
    };
    let migs = page.samples("nvml_mig_instance_info");
    let split: Vec<&str> = migs.filter_map(|sample| sample.label("gpu")).collect();
    let infos = page.samples("nvml_device_info");
    let whole =
        infos.filter_map(|sample| sample.label("gpu")).find(|gpu| !split.contains(gpu)).unwrap();
    let uuid = page.sample("nvml_device_info", &[("gpu", whole)]).unwrap().label("UUID").unwrap();
    let mig_uuid = mig.label("mig_uuid").unwrap();
    for (resource, device, on, instance) in [
        (GPU, uuid.to_owned(), whole, None),
        // Time-slicing with `renameByDefault` and without.
        ("nvidia.com/gpu.shared", format!("{uuid}::3"), whole, None),
        (GPU, format!("{uuid}::3"), whole, None),
        (GPU, format!("{uuid}::"), whole, None),
        (GPU, format!("{uuid}-2"), whole, None),
        (GPU, format!("nvidia{}", minor(whole)), whole, None),
        (GPU, format!("nvidia{}/vgpu1", minor(whole)), whole, None),
        ("nvidia.com/H200_RENAMED", uuid.to_owned(), whole, None),
        // The MIG strategies mixed and single.
        ("nvidia.com/mig-1g.18gb", mig_uuid.to_owned(), gpu, Some(id)),
        (GPU, mig_uuid.to_owned(), gpu, Some(id)),
        (GPU, format!("{mig_uuid}::7"), gpu, Some(id)),
        (GPU, format!("MIG-{parent}/{id}/{compute}"), gpu, Some(id)),
        (GPU, format!("nvidia{}/gi{id}", minor(gpu)), gpu, Some(id)),
        (GPU, format!("nvidia{}/gi{id}/vgpu1", minor(gpu)), gpu, Some(id)),
    ] {
        kubelet.lists(vec![pod("none", &[])]);
        exporter.until("an idle device", |page| pods_of(page, on, instance) == [""]);
        kubelet.lists(vec![pod("p", &[(resource, &device)])]);
        exporter
            .until(&format!("the pod of {device}"), |page| pods_of(page, on, instance) == ["p"]);
    }
    let elsewhere = "GPU-00000000-0000-4000-8000-000000000000";
    kubelet.lists(vec![pod("p", &[(GPU, elsewhere), (GPU, "what?")])]);
    let unmatched = |page: &Page, reason| {
        page.value("nvml_exporter_pod_resources_ids_unmatched", &[("reason", reason)])
    };
    exporter.until("unmatched ids", |page| {
        unmatched(page, "unknown_form") == Some(1.0)
            && unmatched(page, "no_such_device") == Some(1.0)
    });
    exporter.until_log("what?");
}

#[test]
fn time_slicing_shows_all_sharers_with_and_without_a_series_for_each() {
    let sharers = |uuid: &str| -> Vec<PodResources> {
        (0..4).map(|n| pod(&format!("p{n}"), &[(GPU, &format!("{uuid}::{n}"))])).collect()
    };
    let (plain, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let exporter = plain.ready();
    let uuid = uuids(&exporter.scrape())[0].clone();
    kubelet.lists(sharers(&uuid));
    let page =
        exporter.until("4 sharers", |page| page.samples("nvml_device_pod_info").count() == 4);
    assert_eq!(pods_of(&page, "0", None), [""]);
    assert!(page.sample(TEMP, &[("gpu", "0"), ("namespace", "ml")]).is_some());

    let (split, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let exporter = split.args(["--kubernetes-virtual-gpus"]).ready();
    until_pods(&exporter, "1", &[""]);
    kubelet.lists(sharers(&uuid));
    let page = until_pods(&exporter, "0", &["p0", "p1", "p2", "p3"]);
    assert!(page.sample(TEMP, &[("pod", "p2"), ("vgpu", "2")]).is_some());
    // Without the API server no pod's processes are known: the whole device's value is nobody's.
    let utils = page.samples("DCGM_FI_DEV_GPU_UTIL").filter(|it| it.label("gpu") == Some("0"));
    assert_eq!(utils.map(|it| it.label("pod")).collect::<Vec<_>>(), [Some("")]);
    let missing = [("family", "DCGM_FI_DEV_GPU_UTIL"), ("reason", "pod_uid_unknown")];
    assert!(page.sample("nvml_exporter_process_split_missing", &missing).is_some());
}

#[test]
fn claims_are_mapped_by_the_driver_alone() {
    let (setup, path) = beside_a_kubelet("dgx-h100");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.args(["--kubernetes-enable-dra"]).env("HOME", "/nonexistent").ready();
    kubelet.lists(vec![claiming("c", "two-gpus", &["gpu-0", "gpu-3"]), claiming("d", "x", &["?"])]);
    let page = exporter.until("a claim", |page| {
        page.samples(TEMP).filter(|it| it.label("dra_claim_name") == Some("two-gpus")).count() == 2
    });
    assert!(page.sample(TEMP, &[("pod", "c"), ("dra_device_name", "gpu-3")]).is_some());
}

#[test]
fn a_kubelet_that_hangs_fails_restarts_or_comes_late_holds_up_nothing() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let exporter = setup.ready();
    let page = exporter.until("the missing socket", |page| {
        page.value("nvml_exporter_pod_resources_errors_total", &[("reason", "socket_missing")])
            > Some(0.0)
    });
    assert_eq!(pods_of(&page, "0", None), [""]);
    let uuid = uuids(&page)[0].clone();

    let kubelet = Kubelet::start(&path);
    kubelet.lists(vec![pod("a", &[(GPU, &uuid)])]);
    until_pods(&exporter, "0", &["a"]);

    kubelet.is(Mood::Fails(Code::ResourceExhausted));
    exporter.until("the refusal", |page| {
        page.value("nvml_exporter_pod_resources_up", &[]) == Some(0.0)
    });
    assert_eq!(pods_of(&exporter.scrape(), "0", None), ["a"]);
    kubelet.is(Mood::Hangs);
    exporter.until_passes(20);
    assert_eq!(pods_of(&exporter.scrape(), "0", None), ["a"]);

    drop(kubelet);
    let kubelet = Kubelet::start(&path);
    // As a real one: at first it lists nothing.
    exporter.until("the answer", |page| {
        assert_eq!(pods_of(page, "0", None), ["a"]);
        page.value("nvml_exporter_pod_resources_up", &[]) == Some(1.0)
    });
    kubelet.lists(vec![pod("b", &[(GPU, &uuid)])]);
    until_pods(&exporter, "0", &["b"]);
}

#[test]
fn an_answer_of_20_mb_is_read() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    let exporter = setup.ready();
    let uuid = uuids(&exporter.scrape())[0].clone();
    let mut pods: Vec<_> =
        (0..20).map(|n| pod(&format!("{n}-{}", "x".repeat(1 << 20)), &[])).collect();
    pods.push(pod("a", &[(GPU, &uuid)]));
    kubelet.lists(pods);
    until_pods(&exporter, "0", &["a"]);
}

#[test]
fn garbage_on_the_socket_is_an_error_and_nothing_else() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            use std::io::Write as _;
            let _ = stream.unwrap().write_all(b"HTTP/1.1 200 OK\r\n\r\ngarbage");
        }
    });
    let exporter = setup.ready();
    let page = exporter
        .until("an error", |page| page.sum("nvml_exporter_pod_resources_errors_total") > 0.0);
    assert_eq!(pods_of(&page, "0", None), [""]);
}

#[test]
fn case_84_to_88_job_files_are_read_again_and_again() {
    let setup = Setup::simulate("t4-l4-mixed").counters("DCGM_FI_DEV_GPU_TEMP, gauge, T.");
    let directory = setup.directory();
    let jobs = |page: &Page| -> Vec<String> {
        let samples = page.samples(TEMP).filter(|it| it.label("gpu") == Some("0"));
        samples.map(|it| it.label("hpc_job").unwrap_or("-").to_owned()).collect()
    };
    setup.file("0", "4711\n\n4712\n");
    for (name, text) in [("1e5", "no"), ("NaN", "no"), ("+3", "no"), (".5", "no"), ("abc", "no")] {
        setup.file(name, text);
    }
    let exporter = setup.args([format!("--hpc-job-mapping-dir={directory}")]).ready();
    exporter.until("both jobs", |page| jobs(page) == ["4711", "4712"]);
    assert_eq!(
        exporter.scrape().samples(TEMP).filter(|it| it.label("hpc_job") == Some("no")).count(),
        0
    );
    exporter.write("0", "");
    exporter.until("no job", |page| jobs(page) == ["-"]);
}

#[test]
fn check_says_what_matched_and_what_did_not() {
    let (setup, path) = beside_a_kubelet("t4-l4-mixed");
    let kubelet = Kubelet::start(&path);
    kubelet.lists(vec![pod("a", &[(GPU, "GPU-00000000-0000-0000-0000-000000000000")])]);
    let (code, out, log) = setup.args(["check"]).run();
    assert_eq!(code, 2, "{out}\n{log}");
    assert!(out.contains("unmatched: 1 ids: no_such_device"), "{out}");
    let stranger =
        "Gpu(\"GPU-00000000-0000-0000-0000-000000000000\") (nvidia.com/gpu) of ml/a main";
    assert!(out.contains(stranger), "{out}");
    drop(kubelet);
    let (setup, path) = self::beside_a_kubelet("t4-l4-mixed");
    let (code, out, _) = setup.args(["check"]).run();
    assert_eq!(code, 2, "{out}");
    assert!(out.contains(&path.display().to_string()), "{out}");
}
