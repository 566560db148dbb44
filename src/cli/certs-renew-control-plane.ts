import { type ExitCode, usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import { RENEWABLE_NAMES } from '../kubeadm/pki/renewable.ts';
import { renewCertsWorkflow } from '../kubeadm/workflows/renew-certs.ts';
import type { CommandOptions } from './command.ts';
import { openPkiSettings } from './pki-settings.ts';
import { flagText, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';

/** `certs renew NAME... | all`. */
export async function runCertsRenewControlPlane(services: Services, args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const names = namesOf(args);
  const withinMs = durationMs(flagText(options, 'expiresWithin'));
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const { settings, warnings, cluster, clusterOf } = await openPkiSettings(services, options, reporter);
  try {
    return await runOnHosts(services, {
      workflow: renewCertsWorkflow(names),
      targets: await readHostTargets(services, options),
      cluster,
      clusterOf,
      workflowOptions: { ...settings, withinMs, issuer: await services.certificateIssuer() },
      options,
      reporter,
      warnings,
      dryRun: options.dryRun === true,
      skipPhases: [],
    });
  } finally {
    await cluster?.close();
  }
}

function namesOf(args: readonly string[]): readonly string[] {
  if (args.includes('all')) {
    if (args.length > 1) throw usageError('all stands for every certificate: name no others besides it');
    return RENEWABLE_NAMES;
  }
  const unknown = args.find((name) => !RENEWABLE_NAMES.includes(name));
  if (unknown === undefined) return args;
  throw usageError(`a control plane has no certificate ${unknown} that could be renewed`, `There are all, ${RENEWABLE_NAMES.join(', ')}`);
}

function durationMs(text: string | undefined): number | null {
  if (text === undefined) return null;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds < 0n) throw usageError(`--expires-within: invalid duration "${text}"`, 'Write it like 720h');
  return Number(nanoseconds / 1_000_000n);
}
