import { type Bounds, type Danger, formatMinor, NEWEST_MINOR, OLDEST_MINOR } from '../../src/kubelet/catalogue/catalogue.ts';
import { loadCatalogue } from '../../src/kubelet/catalogue/load-catalogue.ts';

/** The page about the fields of KubeletConfiguration with a danger or usual values, from the catalogue. */
export async function kubeletFieldsPage(): Promise<string> {
  const { fields } = await loadCatalogue();
  const known = [...fields.values()].filter(({ minors }) => minors[1] >= OLDEST_MINOR);
  const dangers = known.flatMap(({ path, danger, liveChange }) => (danger === null ? [] : [dangerRow(path, danger, liveChange)]));
  const bounds = known.flatMap(({ path, bounds: usual }) => (usual === undefined ? [] : [boundsRow(path, usual)]));
  return `# Dangerous fields and usual values

\`npm run reference\` writes this page from the catalogue of the kubelets ${formatMinor(OLDEST_MINOR)} to ${formatMinor(NEWEST_MINOR)}; a test
compares them. [Using kubeletadm](../usage.md#plans-exit-codes-and-output) explains the impacts, and [What a ConfigMap may
set](../dynamic-agent.md#what-a-configmap-may-set) the check of the agent. All other fields of KubeletConfiguration
have no danger.

## Dangerous fields

A change to a dangerous value has the impact \`unsafe\`. Changes to other values have the impact of the last column.

| Field | The kubelet | Effect | Dangerous values | Other values |
| --- | --- | --- | --- | --- |
${dangers.join('\n')}

## Usual values

A change to a value outside the usual ones has the impact \`unsafe\`, and \`config validate\` warns about it.

| Field | Usual values | Reason |
| --- | --- | --- |
${bounds.join('\n')}
`;
}

function dangerRow(path: string, { kind, reason, when }: Danger, liveChange: string): string {
  return `| \`${path}\` | ${kind.replace('-', ' ')} | ${reason} | ${valuesOf(when)} | ${when === undefined ? '' : liveChange} |`;
}

function valuesOf(when: Danger['when']): string {
  if (when === undefined) return 'all';
  if ('to' in when) return String(when.to);
  if ('atLeast' in when) return `${when.atLeast} and more`;
  return 'raised' in when ? 'higher than before' : 'all except an empty one';
}

function boundsRow(path: string, { min, max, reason }: Bounds): string {
  const usual = [...(min === undefined ? [] : [`from ${min}`]), ...(max === undefined ? [] : [`up to ${max}`])].join(' ');
  return `| \`${path}\` | ${usual} | ${reason} |`;
}
