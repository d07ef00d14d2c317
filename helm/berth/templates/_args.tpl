{{/* The command line of berth: a list of arguments. */}}
{{- define "berth.args" -}}
{{- $tls := "/etc/berth/tls" -}}
{{- if include "berth.isExtender" . -}}
- extender
- --config=/etc/berth/config/config.yaml
- --bind-address=0.0.0.0
- --port={{ include "berth.port" . }}
{{- if .Values.extender.clientCA.secretName }}
- --client-ca-file=/etc/berth/client-ca/{{ .Values.extender.clientCA.key }}
{{- end }}
{{- if .Values.extender.tokens }}
- --authentication-token-webhook
{{- end }}
{{- if not (include "berth.authenticates" .) }}
- --allow-unauthenticated
{{- end }}
{{- else -}}
- run
- --config=/etc/berth/config/config.yaml
- --secure-port={{ include "berth.port" . }}
{{- if include "berth.electsLeader" . }}
- --leader-elect=true
- --leader-elect-resource-name={{ include "berth.leaseName" . }}
- --leader-elect-resource-namespace={{ include "berth.leaseNamespace" . }}
- --leader-elect-lease-duration={{ .Values.leaderElection.leaseDuration }}
- --leader-elect-renew-deadline={{ .Values.leaderElection.renewDeadline }}
- --leader-elect-retry-period={{ .Values.leaderElection.retryPeriod }}
{{- if .Values.shards }}
- --shards={{ .Values.shards }}
{{- with .Values.shardLabel }}
- --shard-label={{ . }}
{{- end }}
{{- with .Values.shardPools }}
- --shard-pools={{ join "," . }}
{{- end }}
{{- with .Values.shardPool }}
- --shard-pool={{ . }}
{{- end }}
{{- end }}
{{- else }}
- --leader-elect=false
{{- end }}
{{- if eq .Values.mode "simulator" }}
- --no-scheduling
{{- end }}
{{- if eq .Values.mode "shadow" }}
- --shadow
{{- end }}
{{- if .Values.ui.enabled }}
- --serve-ui
{{- end }}
{{- if include "berth.isRecorded" . }}
- --record=/var/lib/berth/recordings/$(POD_NAME).json.gz
- --record-max-size={{ .Values.recording.maxSize }}
- --record-keep={{ .Values.recording.keep }}
{{- end }}
{{- end }}
{{- if include "berth.hasCertificate" . }}
- --tls-cert-file={{ $tls }}/tls.crt
- --tls-private-key-file={{ $tls }}/tls.key
{{- end }}
{{- if include "berth.hasPlugins" . }}
- --plugin-dir=/etc/berth/plugins
{{- end }}
- -v={{ .Values.verbosity }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}
