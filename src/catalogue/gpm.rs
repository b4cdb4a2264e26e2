//! What is read through GPM, NVML's performance monitoring since Hopper.

/// Metrics of `nvmlGpmMetricsGet`: the mean, or the count reached, between two samples of one
/// device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GpmMetric {
    /// One number of `nvmlGpmMetricId_t`. It is newer than any list of the binding's, so that it
    /// is no enum here.
    Id(u16),
    /// What each `NVLink` of the GPU receives.
    EachLinkRx,
    /// What each `NVLink` of the GPU sends.
    EachLinkTx,
}

/// `NVML_GPM_METRIC_NVLINK_L0_RX_PER_SEC`; then sending, then the next link.
const LINK_0_RX: u16 = 62;

/// `NVML_GPM_METRIC_NVLINK_L18_RX_PER_SEC`: other metrics lie between.
const LINK_18_RX: u16 = 212;

/// How many links the first of both ranges has.
const FIRST_RANGE: u8 = 18;

/// No metric is known of links from here on.
const LINKS: u8 = 36;

impl GpmMetric {
    /// The metric of one link.
    #[must_use]
    pub const fn of_link(self, link: u8) -> Option<u16> {
        let sends = match self {
            Self::Id(_) => return None,
            Self::EachLinkRx => 0,
            Self::EachLinkTx => 1,
        };
        match link {
            0..FIRST_RANGE => Some(LINK_0_RX + 2 * link as u16 + sends),
            FIRST_RANGE..LINKS => Some(LINK_18_RX + 2 * (link - FIRST_RANGE) as u16 + sends),
            _ => None,
        }
    }

    /// Whether it stands for a metric of each link.
    #[must_use]
    pub const fn is_each(self) -> bool {
        !matches!(self, Self::Id(_))
    }

    /// Its numbers for a GPU of so many links, each with its link.
    pub fn ids(self, links: u8) -> impl Iterator<Item = (u16, Option<u8>)> {
        let (one, count) = match self {
            Self::Id(id) => (Some((id, None)), 0),
            Self::EachLinkRx | Self::EachLinkTx => (None, links),
        };
        let each = (0..count).filter_map(move |link| self.of_link(link).map(|id| (id, Some(link))));
        one.into_iter().chain(each)
    }
}

#[cfg(test)]
mod tests {
    use super::GpmMetric::{EachLinkRx, EachLinkTx, Id};

    #[test]
    fn links_have_two_ranges_of_metrics() {
        for (link, rx) in [(0, 62), (1, 64), (17, 96), (18, 212), (35, 246)] {
            assert_eq!(EachLinkRx.of_link(link), Some(rx), "{link}");
            assert_eq!(EachLinkTx.of_link(link), Some(rx + 1), "{link}");
        }
        assert_eq!(EachLinkRx.of_link(36), None);
    }

    #[test]
    fn a_metric_of_links_stands_for_one_a_link() {
        assert_eq!(Id(5).ids(18).collect::<Vec<_>>(), [(5, None)]);
        assert_eq!(EachLinkTx.ids(2).collect::<Vec<_>>(), [(63, Some(0)), (65, Some(1))]);
        assert_eq!(EachLinkRx.ids(0).count(), 0);
    }
}
