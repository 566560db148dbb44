import { type ExitCode, formatProblem, usageError } from '../base/errors.ts';
import { loadCatalogue, type Minor, NEWEST_MINOR, OLDEST_MINOR } from '../kubelet/catalogue.ts';
import { type ConfigSide, diffConfigs } from '../kubelet/diff/diff-configs.ts';
import { diffDocument, renderDiff } from '../kubelet/diff/render-diff.ts';
import { clusterOnUse } from './cluster-on-use.ts';
import type { CommandOptions } from './command.ts';
import { readMinor } from './minor-option.ts';
import { flagText } from './read-options.ts';
import { type ReadSide, readSide } from './read-side.ts';
import type { Services } from './services.ts';
import { formatOf, renderDocument } from './show-document.ts';

/** `config diff A B`: exit code 6 with `--exit-code` when they differ in what is in force. */
export async function runDiff(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const [first, second, ...more] = args;
  if (first === undefined || second === undefined || more.length > 0) throw usageError('two configurations are compared', 'Name both');
  const version = flagText(options, 'kubernetesVersion');
  const chosen = version === undefined ? null : readMinor(version, 'kubernetes-version', OLDEST_MINOR);
  const catalogue = await loadCatalogue();
  const cluster = clusterOnUse(services, options);
  try {
    const context = { services, options, catalogue, cluster: cluster.open };
    const [a, b] = [await readSide(first, context), await readSide(second, context)];
    const [before, after] = [toSide(services, a, chosen ?? a.minor ?? b.minor), toSide(services, b, chosen ?? b.minor ?? a.minor)];
    const diff = diffConfigs(before, after, catalogue);
    const format = formatOf(options);
    services.output.stdout(format === 'text' ? renderDiff(diff, before, after) : renderDocument(diffDocument(diff, before, after), format));
    return options.exitCode === true && diff.differences.length > 0 ? 6 : 0;
  } finally {
    await cluster.close();
  }
}

/** What the kubelet passes over is said: it is not compared. */
function toSide({ output }: Services, { name, configOf }: ReadSide, minor: Minor | null): ConfigSide {
  const known = minor ?? NEWEST_MINOR;
  const { config, warnings } = configOf(known);
  for (const warning of warnings) output.stderr(`warning: ${formatProblem(warning)}\n`);
  return { name, minor: known, config };
}
