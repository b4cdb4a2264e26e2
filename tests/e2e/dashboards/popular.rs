//! The dashboard that comes with dcgm-exporter, number 12239 on grafana.com: what its panels and
//! variables ask, asked of this exporter.

use crate::support::{Prometheus, Setup};

/// Panels with their queries.
const PANELS: &[(&str, &str)] = &[
    ("GPU Temperature", r#"DCGM_FI_DEV_GPU_TEMP{instance=~"$instance", gpu=~"$gpu"}"#),
    ("GPU Avg. Temp", r#"avg(DCGM_FI_DEV_GPU_TEMP{instance=~"$instance", gpu=~"$gpu"})"#),
    ("GPU Power Usage", r#"DCGM_FI_DEV_POWER_USAGE{instance=~"$instance", gpu=~"$gpu"}"#),
    ("GPU Power Total", r#"sum(DCGM_FI_DEV_POWER_USAGE{instance=~"$instance", gpu=~"$gpu"})"#),
    ("GPU SM Clocks", r#"DCGM_FI_DEV_SM_CLOCK{instance=~"$instance", gpu=~"$gpu"} * 1000000"#),
    ("GPU Utilization", r#"DCGM_FI_DEV_GPU_UTIL{instance=~"$instance", gpu=~"$gpu"}"#),
    ("GPU Framebuffer Mem Used", r#"DCGM_FI_DEV_FB_USED{instance=~"$instance", gpu=~"$gpu"}"#),
    (
        "Tensor Core Utilization",
        r#"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{instance=~"$instance", gpu=~"$gpu"}"#,
    ),
];

/// Its variables: values of these labels of this metric.
const VARIABLES: (&str, [&str; 2]) = ("DCGM_FI_DEV_GPU_TEMP", ["instance", "gpu"]);

#[test]
fn the_dashboard_that_comes_with_dcgm_exporter_shows_this_exporter() {
    let exporter = Setup::simulate("dgx-h100").ready();
    let prometheus = Prometheus::start(&[exporter.address]);
    prometheus.until_scraped(2.0);
    let (metric, labels) = VARIABLES;
    let values: Vec<String> = labels
        .iter()
        .map(|label| {
            let answer = prometheus.asked(&format!("count by ({label}) ({metric})")).unwrap();
            let values = answer.iter().map(|(labels, _)| labels[*label].as_str().unwrap());
            values.collect::<Vec<_>>().join("|")
        })
        .collect();
    assert_eq!(values[0], exporter.address.to_string());
    assert_eq!(values[1].split('|').count(), 8, "{values:?}");
    for (title, query) in PANELS {
        let query = query.replace("$instance", &values[0]).replace("$gpu", &values[1]);
        let answer = prometheus.asked(&query).unwrap();
        let expected = match *title {
            "GPU Avg. Temp" | "GPU Power Total" => 1,
            _ => 8,
        };
        assert_eq!(answer.len(), expected, "{title}: {query}");
        // Legends are "GPU {{gpu}}".
        assert!(expected < 8 || answer.iter().all(|(labels, _)| labels["gpu"].is_string()));
    }
}
