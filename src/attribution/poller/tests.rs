//! What is known, put together.

use super::*;
use crate::attribution::{Claim, Container, DeviceId, Holding, Target};

fn holding(pod: &str, claim: Option<&str>) -> Holding {
    let claim = claim.map(|name| {
        Arc::new(Claim {
            name: name.to_owned(),
            namespace: "ml".to_owned(),
            driver: "gpu.nvidia.com".to_owned(),
            pool: "node-1".to_owned(),
            device: "gpu-0".to_owned(),
            share: String::new(),
        })
    });
    Holding {
        container: Arc::new(Container {
            namespace: "ml".to_owned(),
            pod: pod.to_owned(),
            name: "main".to_owned(),
        }),
        resource: "gpu.nvidia.com".into(),
        id: DeviceId { target: Target::Minor(0), replica: None },
        claim,
        since: 1,
    }
}

#[test]
fn administrators_claims_are_left_out_and_nothing_else() {
    let all = Arc::new(Allocations {
        holdings: vec![holding("a", None), holding("b", Some("admin")), holding("c", Some("own"))],
        ..Allocations::default()
    });
    let pods = |admin: &[(&str, &str)]| -> Vec<String> {
        let admin = admin.iter().map(|(space, name)| ((*space).into(), (*name).into())).collect();
        let joined = join(Some(&all), &admin, &Arc::default(), &Arc::default());
        let holdings = &joined.allocations.unwrap().holdings;
        holdings.iter().map(|holding| holding.container.pod.clone()).collect()
    };
    assert_eq!(pods(&[]), ["a", "b", "c"]);
    assert_eq!(pods(&[("ml", "admin")]), ["a", "c"]);
    assert_eq!(pods(&[("other", "admin")]), ["a", "b", "c"]);
}

#[test]
fn an_answer_counts_for_a_minute_or_three_intervals() {
    assert_eq!(keep_for(Duration::from_secs(1)), Duration::from_secs(60));
    assert_eq!(keep_for(Duration::from_secs(30)), Duration::from_secs(90));
}
