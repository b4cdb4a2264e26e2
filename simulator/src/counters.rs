//! What a device counts: memory errors, time held back, bytes moved, errors of links.

use crate::clock::{nearest, whole};
use crate::code::{Answer, NOT_SUPPORTED};
use crate::curve::{mix, unit};
use crate::device::Device;
use crate::gpu::Gpu;
use crate::model::{Ecc, NvLink};
use crate::setting::{Key, Scope};

impl<'a> Device<'a> {
    /// Whether ECC is on. Boards without ECC do not know the question.
    pub(crate) fn ecc_on(&self) -> Answer<bool> {
        if self.model.ecc == Ecc::None {
            return Err(NOT_SUPPORTED);
        }
        Ok(self.setting(Key::EccMode, || 1.0) > 0.0)
    }

    /// ECC errors: corrected or not, since the driver was loaded or ever.
    pub(crate) fn ecc_errors(&self, uncorrected: bool, aggregate: bool) -> u64 {
        let seed = self.gpu.id.seed;
        // One corrected error in a few days, on half of the boards.
        let pace = 86_400.0 * (1.0 + 4.0 * unit(seed, 40));
        let unlucky = unit(seed, 41) < 0.5 && self.model.ecc != Ecc::None;
        let corrected = if unlucky { (self.now / pace).floor() } else { 0.0 };
        let before = if unlucky { (mix(seed, 42) % 20) as f64 } else { 0.0 };
        let volatile = if uncorrected {
            self.setting(Key::DbeVolatile, || 0.0)
        } else {
            self.setting(Key::SbeVolatile, || corrected)
        };
        whole(match (uncorrected, aggregate) {
            (_, false) => volatile,
            (true, true) => self.setting(Key::DbeAggregate, || volatile),
            (false, true) => self.setting(Key::SbeAggregate, || volatile + before),
        })
    }

    /// Nanoseconds for which a cause has held the clocks below what was asked for.
    pub(crate) fn violation(&self, key: Option<Key>, share: f64) -> u64 {
        let natural = || 1e9 * share * self.busy_seconds();
        whole(key.map_or_else(natural, |key| self.setting(key, natural)))
    }

    /// Bytes that have moved over PCI Express: sent, received.
    pub(crate) fn pcie_bytes(&self) -> (u64, u64) {
        let busy = self.busy_seconds();
        let (sent, received) = self.model.pcie.rates();
        (whole(sent * busy + 2e3 * self.now), whole(received * busy + 3e3 * self.now))
    }

    /// How often a packet had to be sent again over PCI Express.
    pub(crate) fn pcie_replays(&self) -> u64 {
        let pace = 40_000.0 * (1.0 + 3.0 * unit(self.gpu.id.seed, 43));
        whole(self.setting(Key::PcieReplay, || (self.now / pace).floor()))
    }

    /// The PCI Express generation and width in use.
    pub(crate) fn pcie_link(&self) -> (u32, u32) {
        let pcie = &self.model.pcie;
        let resting = self.performance_state() > 2;
        let generation = || f64::from(if resting { 1 } else { pcie.generation });
        (
            nearest(self.setting(Key::PcieGeneration, generation)),
            nearest(self.setting(Key::PcieWidth, || f64::from(pcie.width))),
        )
    }

    /// The `NVLinks` of the board.
    pub(crate) fn nvlink(&self) -> Answer<&'a NvLink> {
        self.model.nvlink.as_ref().ok_or(NOT_SUPPORTED)
    }

    /// A value of a link: what is set for the link, or else for all of them.
    pub(crate) fn link_setting(&self, link: u32, key: Key, natural: f64) -> f64 {
        let settings = &self.gpu.settings;
        let scope = Scope::Link(link);
        settings.value(scope, key, || settings.value(Scope::Gpu, key, || natural))
    }

    /// Whether a link is up: unless told otherwise, if there is something at the other end.
    pub(crate) fn link_up(&self, link: u32) -> bool {
        let peers = || {
            let same = |g: &&Gpu| g.model == self.gpu.model && g.number != self.gpu.number;
            self.model.nvlink.as_ref().is_some_and(|n| n.switch)
                || self.world.attached().any(|g| same(&g))
        };
        self.link_setting(link, Key::LinkState, f64::from(u8::from(peers()))) > 0.0
    }

    /// Bytes that have moved over a link: sent, received.
    pub(crate) fn link_bytes(&self, link: u32) -> (u64, u64) {
        let Some(nvlink) = &self.model.nvlink else { return (0, 0) };
        let busy = self.busy_seconds();
        let rate = nvlink.rate();
        let lean = 0.98 + 0.04 * unit(self.gpu.id.seed, 50 + u64::from(link));
        (whole(rate * lean * busy), whole(rate * (2.0 - lean) * busy))
    }

    /// Errors of a link.
    pub(crate) fn link_errors(&self, link: u32, key: Key) -> u64 {
        whole(self.link_setting(link, key, 0.0))
    }
}
