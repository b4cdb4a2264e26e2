//! Families of what happened to GPUs: XIDs and clock events, and of what follows for their health.
//! They are written from histories, not from readings alone, so that a GPU that fell off its bus
//! still says why.

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use super::device::{Labels, extras};
use super::labels::{Block, Insert, Style, Zone};
use super::roster::Member;
use super::scheme::Settings;
use super::sharing::Sharing;
use super::text::Writer;
use crate::attribution::DeviceKey;
use crate::catalogue::{History, Read, Selection, Value};
use crate::health::{self, Evidence, Finding};
use crate::sampler::history::{CLOCK_REASONS, XidCount};
use crate::sampler::snapshot::InstanceIdentity;
use crate::xid;

/// dcgm-exporter's names of the reasons, by bit of NVML's mask.
const REASONS: [&str; CLOCK_REASONS] = [
    "gpu_idle",
    "clocks_setting",
    "power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal",
    "hw_thermal",
    "hw_power_brake",
    "display_clocks",
];

const WINDOW: &str = "window_size_in_ms";

/// `nvmlGpuP2PStatus_t` in dcgm-exporter's words.
const LINKS: [&str; 7] = [
    "OK",
    "ChipsetNotSupported",
    "GPUNotSupported",
    "TopologyNotSupported",
    "DisabledByRegKey",
    "NotSupported",
    "Unknown",
];

/// Whether a row is written here.
pub(super) const fn is_about(read: Read) -> bool {
    matches!(read, Read::History(_) | Read::Health | Read::Peers)
}

/// The GPUs with their label blocks; empty if no row asks for what happened.
pub(super) struct Happened<'a> {
    boards: Vec<Board<'a>>,
    settings: &'a Settings,
    now: SystemTime,
}

struct Board<'a> {
    member: &'a Member<'a>,
    labels: Labels<'a>,
    /// Those that are rows, and those that are gone but had XIDs.
    instances: BTreeMap<u32, Labels<'a>>,
}

impl<'a> Happened<'a> {
    pub(super) fn new(
        members: &'a [Member<'a>],
        selection: &'a Selection,
        (sharing, now): (&Sharing<'a>, SystemTime),
    ) -> Self {
        let boards = if selection.rows.iter().any(|row| is_about(row.field.read)) {
            let selected = members.iter().filter(|member| member.known.is_selected());
            selected.map(|member| Board::new(member, selection, sharing)).collect()
        } else {
            Vec::new()
        };
        Self { boards, settings: sharing.settings, now }
    }

    /// Writes the samples of one family.
    pub(super) fn write(&self, writer: &mut Writer, name: &str, read: Read) {
        for board in &self.boards {
            match read {
                Read::History(History::XidTotal) => board.totals(writer, name),
                Read::History(History::XidTime) => board.times(writer, name),
                Read::History(History::XidWindow) => self.xids(writer, name, board),
                Read::History(History::ClockTotal) => board.appeared(writer, name),
                Read::History(History::ClockWindow) => self.clocks(writer, name, board),
                Read::Health => self.health(writer, name, board),
                Read::Peers => board.peers(writer, name),
                _ => {}
            }
        }
    }

    fn health(&self, writer: &mut Writer, name: &str, board: &Board<'_>) {
        let findings = health::judge(&Evidence {
            status: board.member.status,
            signs: board.member.reading().and_then(|reading| reading.signs.as_ref()),
            history: board.member.history,
            window: (self.settings.xid_window, self.now),
        });
        for Finding { watch, verdict, code } in findings {
            let labels = [extra("health_error_code", code), extra("health_watch", watch.as_str())];
            let value = Value::Int(verdict.number());
            board.samples(writer, (name, None, Style::Dcgm), &labels, value);
        }
    }

    /// What the codes mean that have series, those of no catalogue too.
    pub(super) fn info(&self, writer: &mut Writer) {
        const NAME: &str = "nvml_xid_info";
        let mut codes: BTreeSet<u64> = BTreeSet::new();
        for history in self.boards.iter().map(|board| board.member.history) {
            codes.extend(history.xids.keys().map(|(_, code)| code));
            codes.extend(xid::watched().filter(|_| history.watched));
        }
        writer.gauge(NAME, "What an XID means and what to do first.", |writer| {
            for code in codes {
                let known = xid::find(code);
                let or_unknown = |text: Option<&'static str>| text.unwrap_or("unknown");
                let code = code.to_string();
                let labels = [
                    ("xid", code.as_str()),
                    ("name", known.map_or(xid::UNKNOWN, |known| known.name)),
                    ("class", or_unknown(known.map(|known| known.class.as_str()))),
                    ("severity", or_unknown(known.map(|known| known.severity.as_str()))),
                    ("action", or_unknown(known.map(|known| known.action().as_str()))),
                ];
                let block = Block::of(labels.into_iter().chain(self.settings.labels.host_labels()));
                writer.sample(NAME, block.as_str(), Value::Int(1));
            }
        });
    }

    /// As dcgm-exporter: each row has a 0 without a code if it had no XID.
    fn xids(&self, writer: &mut Writer, name: &str, board: &Board<'_>) {
        let window = self.settings.xid_window;
        let millis = window.as_millis().to_string();
        let count = |count: &XidCount| count.recent.within(window, self.now);
        let whole = board.member.known.whole.then_some(None);
        let rows = whole.into_iter().chain(board.instances.keys().copied().map(Some));
        let unattributed = (!board.member.known.whole && board.has_own()).then_some(None);
        for instance in unattributed.into_iter().chain(rows) {
            let mut any = false;
            let counted = board.xids(instance).map(|(code, xids)| (code, count(xids)));
            for (code, found) in counted.filter(|(_, found)| *found > 0) {
                any = true;
                let code = code.to_string();
                let labels = [extra(WINDOW, &millis), extra("xid", &code)];
                board.samples(writer, (name, instance, Style::Dcgm), &labels, uint(found));
            }
            if !any {
                let labels = [extra(WINDOW, &millis)];
                board.samples(writer, (name, instance, Style::Dcgm), &labels, Value::Int(0));
            }
        }
    }

    fn clocks(&self, writer: &mut Writer, name: &str, board: &Board<'_>) {
        let Some(clocks) = &board.member.history.clocks else { return };
        let window = self.settings.clock_window;
        let millis = window.as_millis().to_string();
        let counts = clocks.within(window, self.now);
        for row in board.rows() {
            for (reason, count) in REASONS.iter().zip(counts).filter(|(_, count)| *count > 0) {
                let labels = [extra("clock_event", reason), extra(WINDOW, &millis)];
                board.samples(writer, (name, row, Style::Dcgm), &labels, uint(count));
            }
            if counts == [0; CLOCK_REASONS] {
                let labels = [extra(WINDOW, &millis)];
                board.samples(writer, (name, row, Style::Dcgm), &labels, Value::Int(0));
            }
        }
    }
}

impl<'a> Board<'a> {
    fn new(member: &'a Member<'a>, selection: &'a Selection, sharing: &Sharing<'a>) -> Self {
        let scheme = &sharing.settings.labels;
        let gpu = member.identity;
        let extras = extras(&member.known.labels, selection);
        let whole = DeviceKey { gpu: gpu.index, instance: None };
        let labels = Labels::new(sharing.sets(whole), &extras, |style, further| {
            Block::gpu(gpu, style, scheme, further)
        });
        let mut instances: BTreeMap<u32, Labels<'a>> = BTreeMap::new();
        let known = member.known.instances.iter().map(|known| known.gpu_instance);
        let told = member.history.xids.keys().filter_map(|(instance, _)| *instance);
        for id in known.chain(told) {
            instances.entry(id).or_insert_with(|| {
                let sets = sharing.sets(DeviceKey { instance: Some(id), ..whole });
                let gone = InstanceIdentity { gpu_instance: id, ..InstanceIdentity::default() };
                let mut all = member.known.instances.iter();
                let identity = all.find(|known| known.gpu_instance == id);
                let identity = identity.map_or(&gone, |known| known.as_ref());
                Labels::new(sets, &extras, |style, further| {
                    Block::instance((gpu, identity), style, scheme, further)
                })
            });
        }
        Self { member, labels, instances }
    }

    /// Whether there were XIDs that belong to no instance.
    fn has_own(&self) -> bool {
        self.member.history.xids.keys().any(|(instance, _)| instance.is_none())
    }

    /// The rows on which a value of the board stands.
    fn rows(&self) -> impl Iterator<Item = Option<u32>> {
        let whole = self.member.known.whole.then_some(None);
        let instances = self.member.known.instances.iter().map(|known| Some(known.gpu_instance));
        whole.into_iter().chain(instances)
    }

    /// The XIDs of one instance, or of the board alone, by code.
    fn xids(&self, of: Option<u32>) -> impl Iterator<Item = (u64, &XidCount)> {
        let all = self.member.history.xids.iter();
        all.filter(move |((instance, _), _)| *instance == of)
            .map(|((_, code), count)| (*code, count))
    }

    fn totals(&self, writer: &mut Writer, name: &str) {
        let history = self.member.history;
        let mut board: BTreeMap<u64, u64> = BTreeMap::new();
        if history.watched {
            board.extend(xid::watched().map(|code| (code, 0)));
        }
        let own = history.xids.iter().filter(|((instance, _), _)| instance.is_none());
        board.extend(own.map(|((_, code), count)| (*code, count.total)));
        for (code, total) in board {
            self.code(writer, (name, None, Style::Dcgm), code, uint(total));
        }
        for ((instance, code), count) in &history.xids {
            if instance.is_some() {
                self.code(writer, (name, *instance, Style::Dcgm), *code, uint(count.total));
            }
        }
    }

    fn times(&self, writer: &mut Writer, name: &str) {
        for ((instance, code), count) in &self.member.history.xids {
            let since = count.last.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let time = Value::Float(since.as_secs_f64());
            self.code(writer, (name, *instance, Style::Own), *code, time);
        }
    }

    /// A reason that never appeared has no series, as in dcgm-exporter.
    fn appeared(&self, writer: &mut Writer, name: &str) {
        let Some(clocks) = &self.member.history.clocks else { return };
        for row in self.rows() {
            for (reason, count) in REASONS.iter().zip(clocks.appeared) {
                if count > 0 {
                    let labels = [extra("clock_event", reason)];
                    self.samples(writer, (name, row, Style::Dcgm), &labels, uint(count));
                }
            }
        }
    }

    fn peers(&self, writer: &mut Writer, name: &str) {
        let reading = self.member.reading();
        for (peer, status) in reading.map(|reading| reading.peers.as_slice()).unwrap_or_default() {
            let words = usize::try_from(*status).ok().and_then(|status| LINKS.get(status));
            let peer = peer.to_string();
            let labels =
                [extra("link_status", words.unwrap_or(&"Unknown")), extra("peer_gpu", &peer)];
            let value = Value::Int(i64::from(*status));
            self.samples(writer, (name, None, Style::Dcgm), &labels, value);
        }
    }

    fn code(&self, writer: &mut Writer, of: (&str, Option<u32>, Style), code: u64, value: Value) {
        let mut text = itoa::Buffer::new();
        self.samples(writer, of, &[extra("xid", text.format(code))], value);
    }

    /// A sample for each copy of a row.
    fn samples(
        &self,
        writer: &mut Writer,
        (name, instance, style): (&str, Option<u32>, Style),
        labels: &[Insert<'_>],
        value: Value,
    ) {
        let row = match instance {
            None => Some(&self.labels),
            Some(id) => self.instances.get(&id),
        };
        for block in row.map(|row| row.of(style)).unwrap_or_default() {
            writer.sample_with(name, block, labels, value);
        }
    }
}

fn extra<'a>(name: &'a str, value: &'a str) -> Insert<'a> {
    Insert { zone: Zone::Extra, name, value }
}

fn uint(value: u64) -> Value {
    i64::try_from(value).map_or(Value::Uint(value), Value::Int)
}
