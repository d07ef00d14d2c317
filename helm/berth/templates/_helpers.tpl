{{/* Names. */}}

{{- define "berth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "berth.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "berth.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Of what has no namespace: releases of one name in two namespaces must not share it. */}}
{{- define "berth.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "berth.fullname" .) -}}
{{- end -}}

{{- define "berth.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "berth.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: which one, when serviceAccount.create is false?" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "berth.tlsSecretName" -}}
{{- if eq .Values.tls.source "secret" -}}
{{- required "tls.secretName: which one, when tls.source is secret?" .Values.tls.secretName -}}
{{- else -}}
{{- default (printf "%s-tls" (include "berth.fullname" .)) .Values.tls.secretName -}}
{{- end -}}
{{- end -}}

{{- define "berth.serviceHost" -}}
{{- printf "%s.%s.svc" (include "berth.fullname" .) .Release.Namespace -}}
{{- end -}}

{{- define "berth.image" -}}
{{- $tag := default .Chart.AppVersion .Values.image.tag -}}
{{- $how := printf "docker build --tag REGISTRY/berth:%s . && docker push REGISTRY/berth:%s" $tag $tag -}}
{{- $why := printf "image.repository: the image is published nowhere; build it in a checkout of berth, push it to where your nodes find it (%s), and --set image.repository=REGISTRY/berth" $how -}}
{{- $repository := required $why .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" $repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" $repository $tag -}}
{{- end -}}
{{- end -}}

{{/* Labels. */}}

{{- define "berth.selectorLabels" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: scheduler
{{- end -}}

{{- define "berth.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "berth.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: berth
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What follows from the mode. "true" or nothing, where it is a question. */}}

{{- define "berth.schedules" -}}
{{- if has .Values.mode (list "scheduler" "second-scheduler") -}}true{{- end -}}
{{- end -}}

{{- define "berth.isExtender" -}}
{{- if eq .Values.mode "extender" -}}true{{- end -}}
{{- end -}}

{{/* Whether the scheduler writes down its steps; an extender has no such flag. */}}
{{- define "berth.isRecorded" -}}
{{- if and .Values.recording.enabled (not (include "berth.isExtender" .)) -}}true{{- end -}}
{{- end -}}

{{- define "berth.schedulerName" -}}
{{- default (ternary "berth" "default-scheduler" (eq .Values.mode "second-scheduler")) .Values.schedulerName -}}
{{- end -}}

{{- define "berth.electsLeader" -}}
{{- if and (include "berth.schedules" .) .Values.leaderElection.enabled -}}true{{- end -}}
{{- end -}}

{{- define "berth.leaseName" -}}
{{- default (ternary "kube-scheduler" (include "berth.fullname" .) (eq .Values.mode "scheduler")) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "berth.leaseNamespace" -}}
{{- default (ternary "kube-system" .Release.Namespace (eq .Values.mode "scheduler")) .Values.leaderElection.resourceNamespace -}}
{{- end -}}

{{- define "berth.priorityClassName" -}}
{{- default (ternary "system-cluster-critical" "" (eq .Values.mode "scheduler")) .Values.priorityClassName -}}
{{- end -}}

{{- define "berth.port" -}}
{{- ternary 10262 10259 (eq .Values.mode "extender") -}}
{{- end -}}

{{/* Whether two pods at once would both schedule. */}}
{{- define "berth.isAlone" -}}
{{- if and (include "berth.schedules" .) (not .Values.leaderElection.enabled) -}}true{{- end -}}
{{- end -}}

{{/* How many pods there are. Each of several shadows would keep a report of its own. */}}
{{- define "berth.replicas" -}}
{{- ternary 1 (int .Values.replicaCount) (eq .Values.mode "shadow") -}}
{{- end -}}

{{/* How pods are replaced. */}}
{{- define "berth.strategy" -}}
{{- $type := default (ternary "Recreate" "RollingUpdate" (eq (include "berth.isAlone" .) "true")) .Values.strategy.type -}}
type: {{ $type }}
{{- if eq $type "RollingUpdate" }}
rollingUpdate:
  {{- if .Values.strategy.rollingUpdate }}
  {{- toYaml .Values.strategy.rollingUpdate | nindent 2 }}
  {{- else }}
  maxSurge: {{ ternary 0 1 .Values.hostNetwork }}
  maxUnavailable: {{ ternary 1 0 .Values.hostNetwork }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* Whether who asks the port has to show something; in mode extender that is a choice. */}}
{{- define "berth.authenticates" -}}
{{- if or (not (include "berth.isExtender" .)) .Values.extender.clientCA.secretName .Values.extender.tokens -}}true{{- end -}}
{{- end -}}

{{/* Whether the API server is asked who they are and what they may. */}}
{{- define "berth.delegates" -}}
{{- if or (not (include "berth.isExtender" .)) .Values.extender.tokens -}}true{{- end -}}
{{- end -}}

{{/* Plain HTTP where there is nothing to be shown, by either side. */}}
{{- define "berth.scheme" -}}
{{- if and (not (include "berth.authenticates" .)) (eq .Values.tls.source "self-signed") -}}
http
{{- else -}}
https
{{- end -}}
{{- end -}}

{{- define "berth.hasCertificate" -}}
{{- if ne .Values.tls.source "self-signed" -}}true{{- end -}}
{{- end -}}

{{/* Who may come in: peers of a NetworkPolicy, or nothing for everybody. */}}
{{- define "berth.peers" -}}
{{- if .Values.networkPolicy.from -}}
{{- toYaml .Values.networkPolicy.from -}}
{{- else -}}
{{- $isExtender := include "berth.isExtender" . -}}
{{- $namespaces := list -}}
{{- range concat .Values.rbac.metricsReaders (ternary .Values.rbac.extenderClients .Values.rbac.users (not (empty $isExtender))) -}}
{{- if and (eq .kind "ServiceAccount") .namespace -}}
{{- $namespaces = append $namespaces .namespace -}}
{{- else if and (eq .kind "Group") (hasPrefix "system:serviceaccounts:" .name) -}}
{{- $namespaces = append $namespaces (trimPrefix "system:serviceaccounts:" .name) -}}
{{- end -}}
{{- end -}}
{{- $cidrs := ternary .Values.networkPolicy.apiServer.cidrs list (not (empty $isExtender)) -}}
{{- if or (not $isExtender) $cidrs -}}
- podSelector: {} # of the release's own namespace
{{- range $namespaces | uniq | sortAlpha }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ . }}
{{- end }}
{{- /* kube-scheduler is where the API server is, on the network of its host. */}}
{{- range $cidrs }}
- ipBlock:
    cidr: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "berth.hasPlugins" -}}
{{- if or .Values.plugins.files .Values.plugins.configMaps -}}true{{- end -}}
{{- end -}}

{{/* The KubeSchedulerConfiguration. */}}
{{- define "berth.config" -}}
{{- $config := .Values.config -}}
{{- if not $config -}}
{{- $name := printf "schedulerName: %s" (include "berth.schedulerName" .) -}}
{{- $config = .Files.Get (printf "presets/%s.yaml" .Values.preset) | replace "schedulerName: default-scheduler" $name -}}
{{- else if not (kindIs "string" $config) -}}
{{- $config = toYaml $config -}}
{{- end -}}
{{- tpl $config . | trim -}}
{{- end -}}

{{/* Values that contradict each other. */}}
{{- define "berth.validate" -}}
{{- if and (eq .Values.mode "second-scheduler") (eq .Values.schedulerName "default-scheduler") -}}
{{- fail "schedulerName: default-scheduler is kube-scheduler's; a second scheduler needs another name, or use mode: scheduler" -}}
{{- end -}}
{{- if and .Values.config (ne .Values.preset "default") -}}
{{- fail (printf "preset: %s has no effect, for config is given" .Values.preset) -}}
{{- end -}}
{{- if and (include "berth.isAlone" .) (gt (int .Values.replicaCount) 1) -}}
{{- fail (printf "replicaCount: %d replicas would all schedule at once without leaderElection.enabled" (int .Values.replicaCount)) -}}
{{- end -}}
{{- if and (include "berth.isAlone" .) (eq .Values.strategy.type "RollingUpdate") -}}
{{- fail "strategy.type: RollingUpdate runs an old and a new pod at once, and without leaderElection.enabled both would schedule" -}}
{{- end -}}
{{- if and .Values.strategy.rollingUpdate (eq .Values.strategy.type "Recreate") -}}
{{- fail "strategy.rollingUpdate: has no effect, for strategy.type is Recreate" -}}
{{- end -}}
{{- if include "berth.isExtender" . -}}
{{- if and (not (include "berth.authenticates" .)) (not .Values.extender.allowUnauthenticated) -}}
{{- fail "extender.clientCA.secretName: mode extender needs the authority of kube-scheduler's client certificate, or extender.tokens: true for clients with tokens, or extender.allowUnauthenticated: true to let whoever reaches it have pods bound" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.extender.clientCA.secretName (not .Values.extender.tokens) (not .Values.serviceMonitor.tlsConfig) -}}
{{- fail "serviceMonitor.tlsConfig: with extender.clientCA metrics need a client certificate, too: give cert and keySecret" -}}
{{- end -}}
{{- if and .Values.extender.allowUnauthenticated (not (include "berth.authenticates" .)) .Values.networkPolicy.enabled (not (include "berth.peers" .)) -}}
{{- fail "networkPolicy.from: with extender.allowUnauthenticated whoever reaches the port can have pods bound; say who does, here or in networkPolicy.apiServer.cidrs" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled (eq (include "berth.scheme" .) "https") (not (include "berth.hasCertificate" .)) (not .Values.serviceMonitor.tlsConfig) -}}
{{- fail "serviceMonitor.tlsConfig: Prometheus would show its token to whoever answers, for nobody can verify a self-signed certificate: set tls.source to cert-manager or secret, or accept that by {insecureSkipVerify: true}" -}}
{{- end -}}
{{- if and (eq .Values.tls.source "cert-manager") (not .Values.tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name: who issues the certificate, when tls.source is cert-manager?" -}}
{{- end -}}
{{- end -}}

{{/* Berth itself, in bindings. */}}
{{- define "berth.subject" -}}
- kind: ServiceAccount
  name: {{ include "berth.serviceAccountName" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}

{{/* The pod of `helm test`; it must not be behind the Service. */}}
{{- define "berth.testLabels" -}}
app.kubernetes.io/name: {{ include "berth.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: test
{{- end -}}

{{/* What kube-scheduler has to know of berth, in mode extender. */}}
{{- define "berth.extendersBlock" -}}
{{- $scheme := include "berth.scheme" . -}}
extenders:
  - urlPrefix: {{ $scheme }}://{{ default (include "berth.serviceHost" .) .Values.service.clusterIP }}:{{ include "berth.port" . }}/extender
    filterVerb: filter
    prioritizeVerb: prioritize
    preemptVerb: preempt
    {{- if .Values.extender.bind }}
    bindVerb: bind
    {{- end }}
    weight: 10
    nodeCacheCapable: true
    httpTimeout: 5s
    {{- if eq $scheme "https" }}
    enableHTTPS: true
    tlsConfig:
      {{- if include "berth.hasCertificate" . }}
      serverName: {{ include "berth.serviceHost" . }}
      caFile: /etc/kubernetes/berth/ca.crt
      {{- else }}
      insecure: true
      {{- end }}
      {{- if .Values.extender.clientCA.secretName }}
      certFile: /etc/kubernetes/berth/client.crt
      keyFile: /etc/kubernetes/berth/client.key
      {{- end }}
    {{- end }}
{{- end -}}
