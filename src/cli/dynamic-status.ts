import { describeIdentity, describeSource, formatConfigSource, formatConfigStatus, formatIdentity } from '../core/dynamic/config-source.ts';
import type { Backend } from '../core/dynamic/node-config.ts';
import { type ExitCode, usageError } from '../core/errors.ts';
import { formatAge } from '../core/text/age.ts';
import { renderTable } from '../core/text/table.ts';
import type { Cluster } from '../ports/cluster.ts';
import type { Services } from '../ports/services.ts';
import { type JudgedNode, judgeNodes, readConfigEvents, readNodes } from '../workflows/dynamic/read-nodes.ts';
import { clusterOnUse } from './cluster-on-use.ts';
import type { CommandOptions } from './program.ts';
import { flagText } from './read-options.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `dynamic status [NODE...] [--watch]`. */
export async function runDynamicStatus(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  return withCluster(services, options, async (cluster) => {
    const backend = flagText(options, 'backend') as Backend | undefined;
    let shown = '';
    for (;;) {
      const now = services.clock.now();
      const nodes = await judgeNodes(cluster, args, { now, backend });
      const text = render(nodes, options, now);
      // Ages move by themselves: they are no change.
      const state = JSON.stringify(nodes.map(nodeDocument));
      if (state !== shown) services.output.stdout(text);
      shown = state;
      if (options.watch !== true) return 0;
      await services.clock.sleep(WATCH_MS, services.signal);
    }
  });
}

const WATCH_MS = 2_000;

/** `dynamic history NODE`: oldest first. */
export async function runDynamicHistory(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const [node, ...more] = args;
  if (node === undefined || more.length > 0) throw usageError('the history of one node is shown at a time', 'Name it');
  return withCluster(services, options, async (cluster) => {
    await readNodes(cluster, [node]);
    const events = (await readConfigEvents(cluster, node)).get(node) ?? [];
    const format = formatOf(options);
    const items = events.map(({ at, identity, message }) => ({
      at: at.toISOString(),
      source: identity === null ? null : formatIdentity(identity),
      message,
    }));
    const rows = events.map(({ at, identity }) => [
      at.toISOString().replace('.000', ''),
      identity === null ? 'local configuration' : describeIdentity(identity),
    ]);
    const table =
      rows.length === 0 ? ['No change is remembered: API servers keep Events for an hour.'] : renderTable([['AT', 'CHANGED TO'], ...rows]);
    const document = { apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigHistory', node, items };
    services.output.stdout(format === 'text' ? `${table.join('\n')}\n` : renderDocument(document, format));
    return 0;
  });
}

/** A node's dynamic configuration for machines. */
export function nodeDocument({ config, verdict }: JudgedNode): object {
  const { source } = config.source;
  return {
    node: config.name,
    backend: config.backend,
    kubeletVersion: config.kubeletVersion,
    ready: config.isReady,
    state: verdict.state,
    ...(verdict.since === null ? {} : { since: verdict.since.toISOString() }),
    ...(verdict.why === null ? {} : { why: verdict.why }),
    ...(verdict.mend === null ? {} : { mend: verdict.mend }),
    ...(source === null ? {} : { configSource: formatConfigSource(source) }),
    ...(config.status === null ? {} : { status: formatConfigStatus(config.status) }),
  };
}

function render(nodes: readonly JudgedNode[], options: CommandOptions, now: Date): string {
  const format = formatOf(options);
  if (format !== 'text')
    return renderDocument({ apiVersion: 'kubeletadm.dev/v1alpha1', kind: 'NodeConfigList', items: nodes.map(nodeDocument) }, format);
  if (nodes.length === 0) return 'There are no nodes.\n';
  const header = ['NODE', 'BACKEND', 'STATE', 'SINCE', 'ASSIGNED', 'ACTIVE', 'LAST KNOWN GOOD'];
  const table = renderTable([header, ...nodes.map((node) => rowOf(node, now))]);
  const notes = nodes.flatMap(({ config, verdict }) => [
    ...(verdict.why === null ? [] : [`${config.name}: ${verdict.why}.${verdict.mend === null ? '' : ` ${verdict.mend}.`}`]),
    ...(config.status?.error ? [`${config.name}: it reports "${config.status.error}"`] : []),
  ]);
  return `${[...table, ...notes].join('\n')}\n`;
}

function rowOf({ config, verdict }: JudgedNode, now: Date): readonly string[] {
  const { source, status } = config;
  const assigned = source.source === null ? '-' : describeSource(source.source);
  const local = status === null ? '-' : 'local';
  return [
    config.name,
    config.backend,
    verdict.state,
    verdict.since === null ? '-' : formatAge(now.getTime() - verdict.since.getTime()),
    assigned,
    status?.active ? describeIdentity(status.active) : local,
    status?.lastKnownGood ? describeIdentity(status.lastKnownGood) : local,
  ];
}

async function withCluster(services: Services, options: CommandOptions, use: (cluster: Cluster) => Promise<ExitCode>): Promise<ExitCode> {
  const cluster = clusterOnUse(services, options);
  try {
    return await use(await cluster.open());
  } finally {
    await cluster.close();
  }
}
