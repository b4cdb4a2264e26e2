//! Label blocks: the labels of one device, rendered once and reused for every family.

use std::fmt::Write as _;

use super::scheme::LabelScheme;
use super::text::push_label;
use crate::sampler::snapshot::{GpuIdentity, InstanceIdentity};

/// The three groups of labels, in the order in which dcgm-exporter prints them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Zone {
    /// Who the device is; in a fixed order.
    Identity,
    /// Labels from the counters file and fixed labels of a row; sorted by name.
    Extra,
    /// What holds for the device now, such as the pods that hold it; sorted by name.
    Attribute,
}

/// Whose families a block is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// DCGM's: the model is `modelName`.
    Dcgm,
    /// Our own: the model is `model_name`, as Prometheus names labels.
    Own,
}

/// One rendered label set, `{gpu="0",…} ` with the blank before the value, that further labels
/// can be put into.
#[derive(Debug, Clone, Default)]
pub(super) struct Block<'a> {
    text: String,
    marks: Vec<Mark<'a>>,
}

#[derive(Debug, Clone, Copy)]
struct Mark<'a> {
    zone: Zone,
    name: &'a str,
    /// Where the label begins, its comma included.
    start: usize,
}

/// A label to put into a block for one sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Insert<'a> {
    pub(super) zone: Zone,
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl<'a> Block<'a> {
    /// A set of labels in the order given.
    pub(super) fn of<'v>(labels: impl IntoIterator<Item = (&'a str, &'v str)>) -> Self {
        let mut block = Self::default();
        for (name, value) in labels {
            block.add(Zone::Identity, name, value);
        }
        block.sealed()
    }

    /// The labels of a whole GPU. Unknown ones are printed empty, as dcgm-exporter does.
    pub(super) fn gpu(
        gpu: &GpuIdentity,
        style: Style,
        scheme: &'a LabelScheme,
        further: &Further<'a>,
    ) -> Self {
        let mut block = Self::default();
        block.add_board(gpu, style, scheme);
        block.finish(scheme.host_labels(), further)
    }

    /// The labels of a MIG instance; UUID and the rest are the board's.
    pub(super) fn instance(
        (gpu, instance): (&GpuIdentity, &InstanceIdentity),
        style: Style,
        scheme: &'a LabelScheme,
        further: &Further<'a>,
    ) -> Self {
        let mut block = Self::default();
        block.add_board(gpu, style, scheme);
        block.add(Zone::Identity, "GPU_I_PROFILE", &instance.profile);
        let mut id = itoa::Buffer::new();
        block.add(Zone::Identity, "GPU_I_ID", id.format(instance.gpu_instance));
        block.finish(scheme.host_labels(), further)
    }

    /// The labels of one `NVLink`. Unknown ones are left out, as dcgm-exporter does.
    pub(super) fn link(
        gpu: &GpuIdentity,
        link: u8,
        scheme: &'a LabelScheme,
        further: &Further<'a>,
    ) -> Self {
        let mut block = Self::default();
        let mut number = itoa::Buffer::new();
        // DCGM counts links from 1.
        block.add(Zone::Identity, "nvlink", number.format(u16::from(link) + 1));
        block.add(Zone::Identity, "gpu", number.format(gpu.index));
        let device = device_name(gpu);
        for (name, value) in [
            ("gpu_uuid", gpu.uuid.as_str()),
            ("pci_bus_id", &gpu.pci_bus_id),
            ("device", &device),
            ("model_name", &gpu.model),
        ] {
            if !value.is_empty() {
                block.add(Zone::Identity, name, value);
            }
        }
        block.finish(scheme.link_host_labels(), further)
    }

    /// The block as it is.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Appends the block with further labels, which are given sorted by zone, then name. A label
    /// that the block already has stays as it is: a set must not hold a name twice.
    pub(super) fn push_with(&self, out: &mut String, inserts: &[Insert<'_>]) {
        let mut from = 0;
        for insert in inserts {
            if self.marks.iter().any(|mark| mark.name == insert.name) {
                continue;
            }
            let at = self.place(insert);
            out.push_str(&self.text[from..at]);
            out.push(',');
            push_label(out, insert.name, insert.value);
            from = at;
        }
        out.push_str(&self.text[from..]);
    }

    fn place(&self, insert: &Insert<'_>) -> usize {
        self.marks
            .iter()
            .find(|mark| (mark.zone, mark.name) > (insert.zone, insert.name))
            .map_or(self.text.len() - END.len(), |mark| mark.start)
    }

    fn add_board(&mut self, gpu: &GpuIdentity, style: Style, scheme: &LabelScheme) {
        let mut index = itoa::Buffer::new();
        self.add(Zone::Identity, "gpu", index.format(gpu.index));
        self.add(Zone::Identity, scheme.uuid_name(), &gpu.uuid);
        self.add(Zone::Identity, "pci_bus_id", &gpu.pci_bus_id);
        self.add(Zone::Identity, "device", &device_name(gpu));
        match style {
            Style::Own => self.add(Zone::Identity, "model_name", &gpu.model),
            Style::Dcgm if scheme.replace_blanks => {
                self.add(Zone::Identity, "modelName", &without_blanks(&gpu.model));
            }
            Style::Dcgm => self.add(Zone::Identity, "modelName", &gpu.model),
        }
    }

    fn add(&mut self, zone: Zone, name: &'a str, value: &str) {
        self.marks.push(Mark { zone, name, start: self.text.len() });
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        push_label(&mut self.text, name, value);
    }

    fn finish<'v>(
        mut self,
        host: impl Iterator<Item = (&'static str, &'v str)>,
        further: &Further<'a>,
    ) -> Self {
        for (name, value) in host {
            self.add(Zone::Identity, name, value);
        }
        for (zone, labels) in
            [(Zone::Extra, &further.extras), (Zone::Attribute, &further.attributes)]
        {
            for (name, value) in labels {
                if !self.marks.iter().any(|mark| mark.name == *name) {
                    self.add(zone, name, value);
                }
            }
        }
        self.sealed()
    }

    fn sealed(mut self) -> Self {
        self.text.push_str(if self.text.is_empty() { " " } else { END });
        self
    }
}

const END: &str = "} ";

/// What follows a device's identity labels.
#[derive(Debug, Clone, Default)]
pub(super) struct Further<'a> {
    /// Labels from the counters file, sorted by name.
    pub(super) extras: Vec<(&'a str, &'a str)>,
    /// Labels from outside the driver (pods), sorted by name. A device that several pods share
    /// has one block for each set.
    pub(super) attributes: Vec<(&'a str, &'a str)>,
}

/// dcgm-exporter's `device`: from the index, not from the number of the device file.
fn device_name(gpu: &GpuIdentity) -> String {
    format!("nvidia{}", gpu.index)
}

fn without_blanks(model: &str) -> String {
    let mut joined = String::with_capacity(model.len());
    for word in model.split_whitespace() {
        let separator = if joined.is_empty() { "" } else { "-" };
        let _ = write!(joined, "{separator}{word}");
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu() -> GpuIdentity {
        GpuIdentity { uuid: "GPU-1".to_owned(), model: "H200".to_owned(), ..Default::default() }
    }

    #[test]
    fn further_labels_go_where_dcgm_exporter_sorts_them() {
        let scheme = LabelScheme { host: Some("n".to_owned()), ..LabelScheme::default() };
        let further = Further {
            extras: vec![("DCGM_FI_DRIVER_VERSION", "570"), ("app", "train")],
            attributes: vec![("container", "main"), ("namespace", "ml"), ("pod", "job-0")],
        };
        let block = Block::gpu(&gpu(), Style::Dcgm, &scheme, &further);
        let mut out = String::new();
        block.push_with(
            &mut out,
            &[
                Insert { zone: Zone::Extra, name: "reason", value: "idle" },
                Insert { zone: Zone::Attribute, name: "err_code", value: "79" },
                Insert { zone: Zone::Attribute, name: "err_msg", value: "\"x\"" },
            ],
        );
        assert_eq!(
            out,
            concat!(
                r#"{gpu="0",UUID="GPU-1",pci_bus_id="",device="nvidia0",modelName="H200","#,
                r#"hostname="n",DCGM_FI_DRIVER_VERSION="570",app="train",reason="idle","#,
                r#"container="main",err_code="79",err_msg="\"x\"",namespace="ml",pod="job-0"} "#
            )
        );
    }

    #[test]
    fn a_name_that_is_taken_is_not_given_twice() {
        let scheme = LabelScheme { old_namespace: true, ..LabelScheme::default() };
        let further =
            Further { attributes: vec![("gpu", "7"), ("uuid", "x")], ..Further::default() };
        let block = Block::gpu(&gpu(), Style::Dcgm, &scheme, &further);
        let mut out = String::new();
        block.push_with(&mut out, &[Insert { zone: Zone::Extra, name: "uuid", value: "y" }]);
        assert_eq!(out, block.as_str());
        assert_eq!(out.matches("gpu=").count(), 1);
        assert_eq!(out.matches("uuid=").count(), 1);
    }

    #[test]
    fn a_set_without_labels_is_a_blank() {
        assert_eq!(Block::of([]).as_str(), " ");
    }
}
