{{/* What the values ask for, each as "true" or nothing. */}}

{{/* The exporter lists and watches pods; as src/service/attribution.rs has it. */}}
{{- define "nvml-exporter.asksForPods" -}}
{{- $k := .Values.kubernetes }}
{{- if and $k.enabled (or $k.podLabels.enabled $k.podUid $k.ownerLabels $k.virtualGpus $k.podAnnotations.allowlistRegex (has "pod" .Values.usageBy)) -}}
true
{{- end }}
{{- end }}

{{- define "nvml-exporter.asksForClaims" -}}
{{- if and .Values.kubernetes.enabled .Values.kubernetesDRA.enabled }}true{{ end }}
{{- end }}

{{- define "nvml-exporter.asksForConfigMap" -}}
{{- if .Values.configMapData.name }}true{{ end }}
{{- end }}

{{- define "nvml-exporter.asksApiServer" -}}
{{- if or (include "nvml-exporter.asksForPods" .) (include "nvml-exporter.asksForClaims" .) (include "nvml-exporter.asksForConfigMap" .) -}}
true
{{- end }}
{{- end }}

{{/* The exporter has a web configuration file made by this chart. */}}
{{- define "nvml-exporter.ownWebConfig" -}}
{{- if or .Values.tlsServerConfig.enabled .Values.basicAuth.users }}true{{ end }}
{{- end }}

{{- define "nvml-exporter.servesTls" -}}
{{- if or .Values.tlsServerConfig.enabled (and .Values.webConfig.existingSecret .Values.webConfig.tls) -}}
true
{{- end }}
{{- end }}

{{/* A probe of the kubelet's has neither password nor client certificate. */}}
{{- define "nvml-exporter.keepsProbesOut" -}}
{{- $tls := .Values.tlsServerConfig }}
{{- if or .Values.webConfig.existingSecret .Values.basicAuth.users (and $tls.enabled (hasPrefix "Require" $tls.clientAuthType)) -}}
true
{{- end }}
{{- end }}

{{- define "nvml-exporter.verifiesClients" -}}
{{- if has .Values.tlsServerConfig.clientAuthType (list "VerifyClientCertIfGiven" "RequireAndVerifyClientCert") }}true{{ end }}
{{- end }}

{{- define "nvml-exporter.hasServiceMonitor" -}}
{{- $wanted := .Values.serviceMonitor.enabled }}
{{- if eq (toString $wanted) "auto" }}
{{- $wanted = and .Values.service.enabled (not .Values.podMonitor.enabled) (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor") }}
{{- end }}
{{- if $wanted }}true{{ end }}
{{- end }}

{{/* The kubelet's socket, the driver's file that makes a monitor, and the kernel log are root's. */}}
{{- define "nvml-exporter.needsRoot" -}}
{{- if or .Values.kubernetes.enabled .Values.migMonitor.enabled .Values.kernelLog.enabled }}true{{ end }}
{{- end }}
