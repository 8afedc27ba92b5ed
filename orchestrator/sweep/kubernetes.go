package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

// ByManifest is Round.On of shards that a user starts from a manifest. Nothing here can list or end
// them.
const ByManifest = "manifest"

// maxConfig is the largest submission, in bytes, that fits a ConfigMap with its names.
const maxConfig = 1<<20 - 4096

// Kubernetes are the settings of a manifest beside its submission.
type Kubernetes struct {
	Image    string // that has this weft as its entry point
	Claim    string // name of the volume claim with the results, which all nodes can mount
	Workers  int    // processors of a shard
	Memory   int64  // limit of a shard in bytes; 0: none
	Parallel int    // shards at a time
}

// kubernetes is the manifest: the submission, and an indexed job with an index for each shard. An
// index that fails is tried again by itself, so that it does not use up the tries of the others.
var kubernetes = template.Must(template.New("kubernetes").Parse(`# Sweep {{.ID}} of lab {{.Lab}}: {{.Points}} points in {{.Shards}} shards.
# kubectl apply -f FILE; when the job is done: weft sweep collect {{.ID}} --results (where the claim's volume is mounted)
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{.Name}}
  labels: {weft.sweep: {{.ID}}}
immutable: true
data:
  submission.json: {{.Submission}}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{.Name}}
  labels: {weft.sweep: {{.ID}}}
spec:
  completionMode: Indexed
  completions: {{.Shards}}
  parallelism: {{.Parallel}}
  backoffLimitPerIndex: {{.Tries}}
  template:
    metadata:
      labels: {weft.sweep: {{.ID}}}
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      enableServiceLinks: false
      securityContext:
        runAsNonRoot: true
        runAsUser: 65534
        runAsGroup: 65534
        fsGroup: 65534
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: shard
          image: {{.Image}}
          args: [sweep, shard, --submission, /submission/submission.json, --results, /results, --workers, "{{.Workers}}"]
          env:
            - {name: HOME, value: /tmp}
{{- if .Memory}}
            - {name: GOMEMLIMIT, value: "{{.Heap}}"}
{{- end}}
          resources:
            requests: {cpu: "{{.Workers}}"{{if .Memory}}, memory: "{{.Memory}}"{{end}}}
{{- if .Memory}}
            limits: {memory: "{{.Memory}}"}
{{- end}}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: submission, mountPath: /submission, readOnly: true}
            - {name: results, mountPath: /results}
            - {name: temporary, mountPath: /tmp}
      volumes:
        - name: submission
          configMap: {name: {{.Name}}}
        - name: results
          persistentVolumeClaim: {claimName: {{.Claim}}}
        - name: temporary
          emptyDir: {}
`))

// Manifest returns the manifest of a submission for kubectl apply.
func (k *Kubernetes) Manifest(s *Submission) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	text, err := s.Encode()
	if err != nil {
		return "", err
	}
	if len(text) > maxConfig {
		return "", fmt.Errorf("the lab and its files take %d bytes, and a ConfigMap has room for %d: put fewer or "+
			"smaller files beside the lab, or submit to an engine with --on", len(text), maxConfig)
	}
	quoted := func(text string) (string, error) { // a string of JSON is one of YAML
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		err := e.Encode(text)
		return strings.TrimSpace(b.String()), err
	}
	submission, err := quoted(string(text))
	if err != nil {
		return "", err
	}
	image, err := quoted(k.Image)
	if err != nil {
		return "", err
	}
	claim, err := quoted(k.Claim)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = kubernetes.Execute(&out, map[string]any{
		"ID": s.ID, "Lab": s.Lab, "Points": len(s.Points), "Shards": s.Shards, "Tries": MaxTries,
		"Name":  "weft-" + strings.ToLower(s.Series[:min(len(s.Series), 12)]),
		"Image": image, "Claim": claim, "Submission": submission,
		"Workers": max(1, k.Workers), "Memory": k.Memory, "Heap": HeapLimit(k.Memory),
		"Parallel": max(1, min(k.Parallel, s.Shards)),
	})
	return out.String(), err
}
