{{/* Values that are right each, but not together. What is wrong alone, values.schema.json refuses. */}}
{{- define "nvml-exporter.validate" -}}
{{- $v := .Values }}
{{- if and $v.customMetrics $v.configMapData.name }}
{{- fail "customMetrics and configMapData.name both give the counters file: set one of them" }}
{{- end }}
{{- if and $v.webConfig.existingSecret (include "nvml-exporter.ownWebConfig" .) }}
{{- fail "webConfig.existingSecret is the whole web configuration: put TLS and users into it, or use tlsServerConfig and basicAuth without it" }}
{{- end }}
{{- with $v.tlsServerConfig }}
{{- if and .enabled (not .existingSecret) (not (and .cert .key)) }}
{{- fail "tlsServerConfig.enabled needs a certificate: set tlsServerConfig.existingSecret, or tlsServerConfig.cert and tlsServerConfig.key" }}
{{- end }}
{{- if and .enabled (not .existingSecret) (not .ca) (include "nvml-exporter.verifiesClients" $) }}
{{- fail (printf "tlsServerConfig.clientAuthType %s needs the authority of the clients: set tlsServerConfig.ca" .clientAuthType) }}
{{- end }}
{{- end }}
{{- if and (has "pod" $v.usageBy) (not $v.kubernetes.enabled) }}
{{- fail "usageBy: pod needs kubernetes.enabled, by which it is known who holds a GPU" }}
{{- end }}
{{- range $v.usageBy }}
{{- if and (not (has . (list "none" "pod"))) (not $v.hostPID) }}
{{- fail (printf "usageBy: %s is found by processes, which are not seen without hostPID: set it" .) }}
{{- end }}
{{- end }}
{{- if and (has "none" $v.usageBy) (gt (len $v.usageBy) 1) }}
{{- fail "usageBy: none stands alone" }}
{{- end }}
{{- if and $v.podMonitor.enabled (include "nvml-exporter.hasServiceMonitor" .) }}
{{- fail "serviceMonitor.enabled and podMonitor.enabled would scrape every pod twice: set one of them" }}
{{- end }}
{{- if and (include "nvml-exporter.hasServiceMonitor" .) (not $v.service.enabled) }}
{{- fail "serviceMonitor.enabled needs service.enabled: turn it on, or use podMonitor.enabled" }}
{{- end }}
{{- with $v.prometheusRule }}
{{- if .enabled }}
{{- $job := include "nvml-exporter.name" $ }}
{{- $labelled := or (eq $v.serviceMonitor.jobLabel "app.kubernetes.io/name") $v.podMonitor.enabled }}
{{- if and $labelled (not (regexMatch (printf "^(?:%s)$" .thresholds.job) $job)) }}
{{- fail (printf "prometheusRule.thresholds.job %q does not match the job %q that monitors of this chart give: set it, or alerts about missing exporters never fire" .thresholds.job $job) }}
{{- end }}
{{- if eq $v.hostLabel "Hostname" }}
{{- fail "prometheusRule.enabled needs the label hostname: set hostLabel to hostname or both" }}
{{- end }}
{{- end }}
{{- end }}
{{- range $v.extraEnv }}
{{- if and (eq .name "NVIDIA_MIG_MONITOR_DEVICES") (not $v.migMonitor.enabled) }}
{{- fail "extraEnv: NVIDIA_MIG_MONITOR_DEVICES without SYS_ADMIN keeps the container from starting: set migMonitor.enabled, which gives both" }}
{{- end }}
{{- end }}
{{- range $name, $hash := $v.basicAuth.users }}
{{- if not (regexMatch "^[$]2[aby][$][0-9]{2}[$][./A-Za-z0-9]{53}$" $hash) }}
{{- fail (printf "basicAuth.users.%s is not a bcrypt hash: passwords do not belong here; htpasswd -nBC 10 \"\" makes a hash of one" $name) }}
{{- end }}
{{- end }}
{{- range $name, $patterns := dict
  "kubernetes.podLabels.allowlistRegex" $v.kubernetes.podLabels.allowlistRegex
  "kubernetes.podAnnotations.allowlistRegex" $v.kubernetes.podAnnotations.allowlistRegex
  "kubernetes.ignorePods" $v.kubernetes.ignorePods
}}
{{- range $patterns }}
{{- if contains "," . }}
{{- fail (printf "%s: %q has a comma, at which the exporter splits the list: write it as several expressions" $name .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
