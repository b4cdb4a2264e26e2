{{/* Parts of the container: environment, probes, security. */}}

{{- define "nvml-exporter.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
{{- $v := .Values }}
{{- $env := list
  (list "NVIDIA_VISIBLE_DEVICES" "all")
  (list "NVIDIA_DRIVER_CAPABILITIES" "utility")
  (list "DCGM_EXPORTER_LISTEN" (printf ":%v" $v.listenPort))
  (list "DCGM_EXPORTER_INTERVAL" $v.collectInterval)
  (list "DCGM_EXPORTER_DEVICES_STR" $v.devices)
  (list "NVML_EXPORTER_HOST_LABEL" $v.hostLabel)
  (list "NVML_EXPORTER_METRIC_NAMES" $v.metricNames)
  (list "DCGM_EXPORTER_LOG_FORMAT" $v.log.format)
  (list "NVML_EXPORTER_LOG_LEVEL" $v.log.level)
}}
{{- if $v.migMonitor.enabled }}
{{- $env = append $env (list "NVIDIA_MIG_MONITOR_DEVICES" "all") }}
{{- end }}
{{- $env = append $env (list "NVML_EXPORTER_KERNEL_LOG" (ternary "/dev/kmsg" "none" $v.kernelLog.enabled)) }}
{{- if $v.gke.enabled }}
{{- $env = append $env (list "LD_LIBRARY_PATH" "/usr/local/nvidia/lib64") }}
{{- end }}
{{- if $v.customMetrics }}
{{- $env = append $env (list "DCGM_EXPORTER_COLLECTORS" "/etc/nvml-exporter/metrics/metrics.csv") }}
{{- end }}
{{- with $v.configMapData }}
{{- if .name }}
{{- $namespace := default (include "nvml-exporter.namespace" $) .namespace }}
{{- $env = append $env (list "DCGM_EXPORTER_CONFIGMAP_DATA" (printf "%s:%s" $namespace .name)) }}
{{- end }}
{{- end }}
{{- if $v.webConfig.existingSecret }}
{{- $env = append $env (list "DCGM_EXPORTER_WEB_CONFIG_FILE" (printf "/etc/nvml-exporter/web/%s" $v.webConfig.key)) }}
{{- else if include "nvml-exporter.ownWebConfig" . }}
{{- $env = append $env (list "DCGM_EXPORTER_WEB_CONFIG_FILE" "/etc/nvml-exporter/web/web-config.yml") }}
{{- end }}
{{- if $v.hpcJobMapping.enabled }}
{{- $env = append $env (list "DCGM_HPC_JOB_MAPPING_DIR" "/var/lib/nvml-exporter/job-mapping") }}
{{- end }}
{{- with $v.usageBy }}
{{- $env = append $env (list "NVML_EXPORTER_USAGE_BY" (join "," .)) }}
{{- end }}
{{- with $v.debugDump }}
{{- if .enabled }}
{{- $env = concat $env (list
  (list "DCGM_EXPORTER_DUMP_ENABLED" "true")
  (list "DCGM_EXPORTER_DUMP_DIRECTORY" .directory)
  (list "DCGM_EXPORTER_DUMP_RETENTION" .retention)
  (list "DCGM_EXPORTER_DUMP_COMPRESSION" .compression)
) }}
{{- end }}
{{- end }}
{{- range concat $env (fromJsonArray (include "nvml-exporter.kubernetesEnv" .)) }}
- name: {{ index . 0 }}
  value: {{ index . 1 | toString | quote }}
{{- end }}
{{- with $v.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What is about pods, as a JSON list of pairs. Nothing of it without kubernetes.enabled. */}}
{{- define "nvml-exporter.kubernetesEnv" -}}
{{- $k := .Values.kubernetes }}
{{- $env := list }}
{{- if $k.enabled }}
{{- $env = list (list "DCGM_EXPORTER_KUBERNETES" "true") (list "NVML_EXPORTER_ATTRIBUTION" $k.attribution) }}
{{- range list
  (list "KUBERNETES_VIRTUAL_GPUS" $k.virtualGpus)
  (list "KUBERNETES_ENABLE_DRA" .Values.kubernetesDRA.enabled)
  (list "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS" $k.podLabels.enabled)
  (list "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID" $k.podUid)
  (list "NVML_EXPORTER_KUBERNETES_ENABLE_OWNER_LABELS" $k.ownerLabels)
  (list "NVML_EXPORTER_KUBERNETES_ENABLE_NODE_LABEL" $k.nodeLabel)
  (list "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX" (and $k.podLabels.enabled (join "," $k.podLabels.allowlistRegex)))
  (list "NVML_EXPORTER_KUBERNETES_POD_ANNOTATION_ALLOWLIST_REGEX" (join "," $k.podAnnotations.allowlistRegex))
  (list "NVML_EXPORTER_KUBERNETES_IGNORE_PODS" (join "," $k.ignorePods))
  (list "NVIDIA_RESOURCE_NAMES" (join "," $k.resourceNames))
  (list "NVML_EXPORTER_POD_RESOURCES_INTERVAL" $k.pollInterval)
}}
{{- if index . 1 }}
{{- $env = append $env . }}
{{- end }}
{{- end }}
{{- end }}
{{- toJson $env }}
{{- end }}

{{/* A probe: dict "root" . "probe" VALUES "path" PATH. A handler among the values wins. */}}
{{- define "nvml-exporter.probe" -}}
{{- $handler := dict }}
{{- if not (or .probe.httpGet .probe.tcpSocket .probe.exec .probe.grpc) }}
{{- if include "nvml-exporter.keepsProbesOut" .root }}
{{- $handler = dict "tcpSocket" (dict "port" "metrics") }}
{{- else }}
{{- $scheme := ternary "HTTPS" "HTTP" (not (empty (include "nvml-exporter.servesTls" .root))) }}
{{- $handler = dict "httpGet" (dict "path" .path "port" "metrics" "scheme" $scheme) }}
{{- end }}
{{- end }}
{{- toYaml (merge (deepCopy .probe) $handler) }}
{{- end }}

{{/* Privileged containers cannot give rights away; all others have none but the one asked for. */}}
{{- define "nvml-exporter.securityContext" -}}
{{- $own := dict "readOnlyRootFilesystem" true }}
{{- if or (and .Values.gke.enabled .Values.gke.privileged) .Values.kernelLog.enabled .Values.securityContext.privileged }}
{{- $_ := set $own "privileged" true }}
{{- else }}
{{- $capabilities := dict "drop" (list "ALL") }}
{{- if .Values.migMonitor.enabled }}
{{- $_ := set $capabilities "add" (list "SYS_ADMIN") }}
{{- end }}
{{- $_ := set $own "allowPrivilegeEscalation" false }}
{{- $_ := set $own "capabilities" $capabilities }}
{{- $_ := set $own "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- end }}
{{- if include "nvml-exporter.needsRoot" . }}
{{- $_ := set $own "runAsUser" 0 }}
{{- $_ := set $own "runAsNonRoot" false }}
{{- else }}
{{- $_ := set $own "runAsUser" 65534 }}
{{- $_ := set $own "runAsGroup" 65534 }}
{{- $_ := set $own "runAsNonRoot" true }}
{{- end }}
{{- toYaml (mergeOverwrite $own (deepCopy .Values.securityContext)) }}
{{- end }}
