import fc, { type Arbitrary } from 'fast-check';

const suffix = fc.constantFrom('', '0', 'a', 'b2', 'x-y', 'zz');
const podPatches = {
  strategic: fc.constantFrom(
    'metadata: {annotations: {a: "1"}, labels: {tier: null}}',
    'spec: {dnsPolicy: ClusterFirst, hostNetwork: false, terminationGracePeriodSeconds: 0}',
    'spec: {containers: [{name: side, image: x, env: [{name: A, value: ""}, {name: B, value: b}], resources: {limits: {cpu: 0.5, memory: 1024Mi}}}]}',
    'spec: {volumes: [{name: extra, emptyDir: {sizeLimit: 1000M}}, {$patch: delete, name: ca-certs}], tolerations: [{operator: Exists, tolerationSeconds: 5}]}',
    'spec: {nonsense: {a: 1}, securityContext: {runAsUser: 0, runAsNonRoot: false, supplementalGroups: []}}',
    'spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}}',
    'null',
  ),
  merge: fc.constantFrom(
    'metadata: {annotations: null, labels: {x: z}}',
    'spec: {priority: 5, nodeSelector: {a: b}, containers: []}',
    'status: {}',
    'spec: {enableServiceLinks: false, restartPolicy: "", hostAliases: [{ip: 10.0.0.1}]}',
  ),
  json: fc.constantFrom(
    '[{op: add, path: /spec/containers/0/command/-, value: --x=y}]',
    '- {op: replace, path: /spec/containers/0/livenessProbe/httpGet/port, value: 8080}\n- {op: remove, path: /spec/priority}',
    '[{op: add, path: /spec/containers/0/ports/-, value: {containerPort: 99, protocol: UDP}}]',
    '[{op: test, path: /kind, value: Pod}, {op: add, path: /spec/overhead, value: {cpu: 1, memory: "0.5Gi"}}]',
    '[{op: add, path: /spec/initContainers, value: [{name: i, restartPolicy: Always, startupProbe: {exec: {command: [a]}}}]}]',
  ),
};
const deploymentPatches = {
  strategic: fc.constantFrom(
    'spec: {replicas: 3, template: {spec: {tolerations: [{operator: Exists}], containers: [{name: coredns, resources: {limits: {memory: 1Gi}}}]}}}',
    'spec: {replicas: 0, paused: false, strategy: {$retainKeys: [type], type: Recreate}}',
  ),
  merge: fc.constantFrom('spec: {strategy: {rollingUpdate: {maxSurge: 25%}}, minReadySeconds: 5}', 'metadata: {labels: {x: z}}'),
  json: fc.constantFrom(
    '[{op: add, path: /spec/template/spec/topologySpreadConstraints, value: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}]',
  ),
};
const kubeletPatches = {
  strategic: fc.constantFrom(
    'maxPods: 50\nevictionHard: {memory.available: 5%}\nclusterDNS: [10.9.9.9]',
    'authentication: {webhook: {cacheTTL: 3m}}\nregisterWithTaints: [{key: a, effect: NoSchedule}]',
    'containerRuntimeEndpoint: unix:///run/patched.sock\nsyncFrequency: 90s\nstaticPodPath: null',
    'readOnlyPort: 10255\n---\nreadOnlyPort: 0\npodPidsLimit: 4096',
  ),
  merge: fc.constantFrom('featureGates: {A: true}\nlogging: {verbosity: 4}', 'clusterDNS: null', '{}'),
  json: fc.constantFrom(
    '[{op: replace, path: /clusterDNS/0, value: 10.8.8.8}]',
    '[{op: remove, path: /clusterDomain}, {op: add, path: /maxPods, value: 20}]',
    '[{"op":"move","from":"/clusterDomain","path":"/hairpinMode"}]',
  ),
};

const PODS = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const;
const ALL = {
  ...Object.fromEntries(PODS.map((name) => [name, podPatches])),
  corednsdeployment: deploymentPatches,
  kubeletconfiguration: kubeletPatches,
};

/** A file of a patch directory: every target with every type. */
const patchFile = fc.oneof(
  ...Object.entries(ALL).flatMap(([target, texts]) =>
    (['strategic', 'merge', 'json'] as const).map((type) =>
      fc.record({
        name: fc.tuple(suffix, fc.constantFrom('yaml', 'json')).map(([end, extension]) => `${target}${end}+${type}.${extension}`),
        text: texts[type] as Arbitrary<string>,
      }),
    ),
  ),
);

/** The files of a patch directory, or none. */
export const patches = fc.oneof(
  { weight: 2, arbitrary: fc.constant<{ name: string; text: string }[]>([]) },
  { weight: 3, arbitrary: fc.array(patchFile, { minLength: 1, maxLength: 4 }) },
);
