{{/* An endpoint of a ServiceMonitor or PodMonitor: dict "root" . "monitor" VALUES "port" NAME. */}}
{{- define "nvml-exporter.endpoint" -}}
{{- $scheme := ternary "https" "http" (not (empty (include "nvml-exporter.servesTls" .root))) -}}
port: {{ .port }}
path: /metrics
scheme: {{ default $scheme .monitor.scheme }}
interval: {{ .monitor.interval }}
scrapeTimeout: {{ .monitor.scrapeTimeout }}
honorLabels: {{ .monitor.honorLabels }}
{{- range $key := list "relabelings" "metricRelabelings" "tlsConfig" "basicAuth" }}
{{- with index $.monitor $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* Monitors look into their own namespace unless told otherwise. */}}
{{- define "nvml-exporter.monitorPlace" -}}
{{- $home := include "nvml-exporter.namespace" .root }}
{{- if and .monitor.namespace (ne .monitor.namespace $home) -}}
namespaceSelector:
  matchNames: [{{ $home }}]
{{- end }}
{{- end }}
