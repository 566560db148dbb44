import { type ExitCode, usageError } from '../base/errors.ts';
import { parseGoDuration } from '../base/text/go-duration.ts';
import { Secret } from '../base/text/secret.ts';
import { isBootstrapToken, TOKEN_FORM } from '../kubeadm/config/bootstrap-token.ts';
import { renewKubeletWorkflow } from '../kubeadm/workflows/renew-kubelet.ts';
import type { CommandOptions } from './command.ts';
import { openCluster } from './open-cluster.ts';
import { flagList, flagText, readHostTargets, verbosityOf } from './read-options.ts';
import { runOnHosts } from './run-on-hosts.ts';
import type { Services } from './services.ts';
import { trustOf } from './trust-of.ts';

/** `certs renew-kubelet`. With a token no administrator is needed; without one he makes a token for the run. */
export async function runCertsRenew(services: Services, _args: readonly string[], options: CommandOptions): Promise<ExitCode> {
  const token = readToken(flagText(options, 'token'));
  const targets = await readHostTargets(services, options);
  const nodeName = flagText(options, 'nodeName') ?? null;
  if (nodeName !== null && targets.length > 1)
    throw usageError('--node-name is for one host, and several were given', 'Renew them one by one');
  const dryRun = options.dryRun === true;
  const named = flagText(options, 'kubeconfig') !== undefined;
  const reporter = services.reporter({ verbosity: verbosityOf(options), format: 'text' });
  const opened = token !== null && !named ? null : await openCluster(services, options, { dryRun: false, staged: false, writes: reporter });
  try {
    return await runOnHosts(services, {
      workflow: renewKubeletWorkflow,
      targets,
      cluster: opened?.cluster ?? null,
      workflowOptions: {
        templates: await services.templates(),
        token,
        newToken: () => services.newToken(),
        apiServer: opened?.apiServer ?? null,
        force: options.force === true,
        trust: opened === null ? null : trustOf(services, opened),
        nodeName,
        tlsBootstrapMs: timeoutMs(flagText(options, 'timeout')),
        kubeletHealthCheckMs: 240_000,
      },
      options,
      reporter,
      warnings: opened?.warnings ?? [],
      dryRun,
      skipPhases: flagList(options, 'skipPhases'),
      oneHostPerNode: opened !== null,
    });
  } finally {
    await opened?.cluster?.close();
  }
}

const TIMEOUT_MS = 300_000;

function timeoutMs(text: string | undefined): number {
  if (text === undefined) return TIMEOUT_MS;
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === null || nanoseconds <= 0n) throw usageError(`--timeout: invalid duration "${text}"`, 'Write it like 90s or 5m');
  return Number(nanoseconds / 1_000_000n);
}

function readToken(text: string | undefined): Secret | null {
  if (text === undefined) return null;
  if (isBootstrapToken(text)) return new Secret(text);
  throw usageError('--token: this is no bootstrap token', `It has the form ${TOKEN_FORM}`);
}
