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
