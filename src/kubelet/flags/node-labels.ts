/** Labels in Kubernetes' own namespaces that a kubelet may set on its Node. */
const ALLOWED = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]);
const KUBERNETES = /(?:^|\.)(?:kubernetes|k8s)\.io$/;
const FOR_KUBELETS = /(?:^|\.)(?:kubelet|node)\.kubernetes\.io$/;
const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;
const DOMAIN = /^(?=.{1,253}$)[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

/**
 * The errors in a value of `--node-labels` that prevent the kubelet from starting; one clause per invalid
 * label.
 * @param value `key=value,key=value`
 * @param byAdministrator whether an administrator sets labels that the kubelet may not set
 * @see kubernetes/kubernetes cmd/kubelet/app/options (ValidateKubeletFlags), pkg/apis/core/validation: the
 *   same from 1.16 to 1.36
 */
export function nodeLabelIssues(value: string, { byAdministrator = false } = {}): readonly string[] {
  const labels = value.split(',').filter((label) => label.trim() !== '');
  return labels.flatMap((label) => {
    const at = label.indexOf('=');
    if (at < 0) return [`${JSON.stringify(label)} is not key=value`];
    const key = label.slice(0, at).trim();
    const issue = labelIssue(key, label.slice(at + 1).trim());
    if (issue !== null) return [issue];
    return isReservedLabel(key) && !byAdministrator ? [`a kubelet must not set the label ${key} on its own Node (restricted prefix)`] : [];
  });
}

/** Whether only an administrator may set this label on a Node. */
export function isReservedLabel(key: string): boolean {
  const namespace = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
  return KUBERNETES.test(namespace) && !FOR_KUBELETS.test(namespace) && !ALLOWED.has(key);
}

function labelIssue(key: string, value: string): string | null {
  const parts = key.split('/');
  const [namespace, name] = parts.length === 1 ? [null, key] : [parts[0] as string, parts.slice(1).join('/')];
  if (!NAME.test(name) || (namespace !== null && !DOMAIN.test(namespace))) return `${JSON.stringify(key)} is not a valid label key`;
  if (value !== '' && !NAME.test(value)) return `${JSON.stringify(value)} is not a valid value of label ${key}`;
  return null;
}
