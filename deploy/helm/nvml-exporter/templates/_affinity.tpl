{{/* Nodes with GPUs, by whoever labels them; any of these is enough. */}}
{{- define "nvml-exporter.affinity" -}}
{{- if .Values.affinity }}
{{- toYaml .Values.affinity }}
{{- else if .Values.gpuNodesOnly -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      {{- range list
        (list "feature.node.kubernetes.io/pci-10de.present" "true")
        (list "feature.node.kubernetes.io/pci-0302_10de.present" "true")
        (list "feature.node.kubernetes.io/pci-0300_10de.present" "true")
        (list "feature.node.kubernetes.io/cpu-model.vendor_id" "NVIDIA")
        (list "nvidia.com/gpu.present" "true")
      }}
      - matchExpressions:
          - key: {{ index . 0 }}
            operator: In
            values: [{{ index . 1 | quote }}]
      {{- end }}
      - matchExpressions:
          - key: cloud.google.com/gke-accelerator
            operator: Exists
{{- end }}
{{- end }}
