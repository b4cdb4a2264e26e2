{{/* Folders of the container. All are mounted whole: a file mounted by subPath never changes. */}}

{{- define "nvml-exporter.volumes" -}}
{{- $name := include "nvml-exporter.fullname" . }}
{{- if .Values.kubernetes.enabled }}
- name: pod-resources
  hostPath:
    path: {{ .Values.kubeletPath }}
{{- end }}
{{- if .Values.hpcJobMapping.enabled }}
- name: job-mapping
  hostPath:
    path: {{ .Values.hpcJobMapping.directory }}
    type: DirectoryOrCreate
{{- end }}
{{- if .Values.kernelLog.enabled }}
- name: kernel-log
  hostPath:
    path: /dev/kmsg
    type: CharDevice
{{- end }}
{{- if .Values.gke.enabled }}
- name: driver
  hostPath:
    path: {{ .Values.gke.driverPath }}
- name: dev
  hostPath:
    path: /dev
{{- end }}
{{- if .Values.customMetrics }}
- name: metrics
  configMap:
    name: {{ $name }}-metrics
{{- end }}
{{- if .Values.webConfig.existingSecret }}
- name: web
  secret:
    secretName: {{ .Values.webConfig.existingSecret }}
{{- else if include "nvml-exporter.ownWebConfig" . }}
- name: web
  secret:
    secretName: {{ $name }}-web
{{- end }}
{{- if .Values.tlsServerConfig.enabled }}
- name: tls
  secret:
    secretName: {{ default (printf "%s-tls" $name) .Values.tlsServerConfig.existingSecret }}
{{- end }}
{{- if .Values.debugDump.enabled }}
- name: dump
  emptyDir:
    sizeLimit: {{ .Values.debugDump.sizeLimit }}
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "nvml-exporter.volumeMounts" -}}
{{- if .Values.kubernetes.enabled }}
- name: pod-resources
  mountPath: /var/lib/kubelet/pod-resources
  readOnly: true
{{- end }}
{{- if .Values.hpcJobMapping.enabled }}
- name: job-mapping
  mountPath: /var/lib/nvml-exporter/job-mapping
  readOnly: true
{{- end }}
{{- if .Values.kernelLog.enabled }}
- name: kernel-log
  mountPath: /dev/kmsg
  readOnly: true
{{- end }}
{{- if .Values.gke.enabled }}
- name: driver
  mountPath: /usr/local/nvidia
  readOnly: true
- name: dev
  mountPath: /dev
{{- end }}
{{- if .Values.customMetrics }}
- name: metrics
  mountPath: /etc/nvml-exporter/metrics
  readOnly: true
{{- end }}
{{- if or .Values.webConfig.existingSecret (include "nvml-exporter.ownWebConfig" .) }}
- name: web
  mountPath: /etc/nvml-exporter/web
  readOnly: true
{{- end }}
{{- if .Values.tlsServerConfig.enabled }}
- name: tls
  mountPath: /etc/nvml-exporter/tls
  readOnly: true
{{- end }}
{{- if .Values.debugDump.enabled }}
- name: dump
  mountPath: {{ .Values.debugDump.directory }}
{{- end }}
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}
