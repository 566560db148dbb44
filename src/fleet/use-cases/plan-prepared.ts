import { AppError, usageError } from '../../base/errors.ts';
import { memoized } from '../../base/memoized.ts';
import { Secret } from '../../base/text/secret.ts';
import { type BundleContents, bundleContents } from '../../host/bundle/ports.ts';
import { type HostPreparation, isUrl, NO_PREPARATION, type SecretSource } from '../../host/operation/install-model.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';
import { type PlanStep, planAfter } from '../../host/plan-after.ts';
import { hasPhase, planWorkflow, type Workflow, type WorkflowRun } from '../../host/run-workflow.ts';
import { withScheme } from '../../kubeadm/config/defaults.ts';
import { type HostBundle, type PrepareHostOptions, prepareHostWorkflow } from '../../kubeadm/workflows/node/prepare-host.ts';
import type { PlannedHost } from '../file/model.ts';
import type { FleetRunPorts } from '../ports.ts';
import { planWithHooks } from '../run/plan-with-hooks.ts';
import { directoryOf, resolveFleetPath } from './load-fleet.ts';

/** Plans a workflow after the preparation of its host. */
export type PlanPrepared = <Options, Input>(workflow: Workflow<Options, Input>, options: Options) => PlanStep;

/** Plans the declared preparation of a host, then a workflow, with the hooks of the host around both. */
export function planAfterPreparation(
  { name, preparation, hooks, role, nodeRegistration }: Pick<PlannedHost, 'name' | 'preparation' | 'hooks' | 'role' | 'nodeRegistration'>,
  sources: InstallSources,
  run: WorkflowRun,
): PlanPrepared {
  const { bundle } = sources;
  const { criSocket } = nodeRegistration;
  const ofHost = bundle === null ? null : { bundle, role, criSocket: criSocket === undefined ? null : withScheme(criSocket) };
  const planned = afterPreparation({ preparation, bundle: ofHost }, sources, run);
  return (workflow, options) => planWithHooks(name, hooks, planned(workflow, options), sources.readHookSecret);
}

function afterPreparation(
  { preparation: declared, bundle }: { readonly preparation: HostPreparation | undefined; readonly bundle: HostBundle | null },
  sources: InstallSources,
  run: WorkflowRun,
): PlanPrepared {
  return (workflow, options) => {
    const then: PlanStep = (context) => planWorkflow(workflow, context, options, run);
    if (declared === undefined && bundle === null) return then;
    const preparation = declared ?? NO_PREPARATION;
    const preparing = prepareHostWorkflow(preparation, bundle);
    // Skipped phases are those of the workflow: a new cluster skips phases of init.
    const skipPhases = run.skipPhases.filter((name) => hasPhase(preparing, name));
    const first: PlanStep = (context) => planWorkflow(preparing, context, { ...sources, preparation }, { ...run, skipPhases });
    return (context) => planAfter(context, { first, then, thenPhases: workflow.phases.map(({ name }) => name) });
  };
}

const MAX_REDIRECTIONS = 5;
/** A key file has a few KiB. */
const MAX_KEY_BYTES = 1024 * 1024;

type InstallSources = {
  /** Null: no bundle. */
  readonly bundle: BundleContents | null;
  /** Reads a secret for the environment of a hook. @throws AppError USAGE if the secret does not exist */
  readonly readHookSecret: (source: SecretSource) => Promise<Secret>;
} & Pick<PrepareHostOptions, 'templates' | 'readKey' | 'readFile' | 'clusterExceptions' | 'joinServer' | 'readCredentials'>;

/**
 * Local files for the hosts of a fleet: templates, keys of repositories, and programs. Each key and program is
 * read once, when the first host requires it.
 */
export async function installSources(
  services: FleetRunPorts,
  {
    file,
    clusterExceptions,
    joinServer,
    bundle,
  }: Pick<PrepareHostOptions, 'clusterExceptions' | 'joinServer'> & { readonly file: string; readonly bundle: string | undefined },
): Promise<InstallSources> {
  const pathOf = (path: string): string => resolveFleetPath(path, `${directoryOf(services, file)}/fleet`, services.homeDirectory);
  return {
    templates: await services.templates(),
    readKey: memoized((source: string) => (isUrl(source) ? fetchKey(services, source) : services.input.readText(pathOf(source)))),
    readFile: memoized((path: string) => readProgram(services, pathOf(path))),
    clusterExceptions,
    joinServer,
    bundle: bundle === undefined ? null : bundleContents(await (await services.bundleFiles()).open(bundle)),
    readCredentials: (source) => readCredentials(services, source, pathOf),
    readHookSecret: (source) => readHookSecret(services, source, pathOf),
  };
}

/** Longer values are refused by execve(2) together with other variables. */
const MAX_VARIABLE_BYTES = 64 * 1024;

/** The text of a secret and where it is, for messages; empty: none. */
async function readSource({ env, input }: FleetRunPorts, source: SecretSource, pathOf: (path: string) => string) {
  if ('env' in source) return { where: `the environment variable ${source.env}`, text: env[source.env] ?? '' };
  return { where: pathOf(source.file), text: await input.readText(pathOf(source.file)) };
}

/** Reads a secret of a hook without the line break at its end. No message contains the value. */
async function readHookSecret(services: FleetRunPorts, source: SecretSource, pathOf: (path: string) => string): Promise<Secret> {
  const { where, text: whole } = await readSource(services, source, pathOf);
  const text = whole.replace(/\r?\n$/, '');
  if (text === '')
    throw usageError(
      `hooks: ${where} is ${'env' in source ? 'not set or ' : ''}empty`,
      `${'env' in source ? `Export ${source.env} on the local host` : 'Write the secret to the file'}, or correct env of the hook in the fleet file`,
    );
  if (text.includes('\0') || Buffer.byteLength(text) > MAX_VARIABLE_BYTES)
    throw usageError(
      `hooks: the value of ${where} is not usable as an environment variable: too long, or has a null character`,
      'A variable has at most 64 KiB and no null characters',
    );
  return new Secret(text);
}

/** Reads the credentials of the proxy from the source in the fleet file, encoded for a URL. No message contains the value. */
async function readCredentials(services: FleetRunPorts, source: SecretSource, pathOf: (path: string) => string): Promise<Secret> {
  const { where, text: whole } = await readSource(services, source, pathOf);
  const text = whole.trim();
  if (text === '')
    throw usageError(`proxy.credentials: ${where} is ${'env' in source ? 'not set or ' : ''}empty`, 'Expected form: USER:PASSWORD');
  if (!/^[^:\p{Cc}]+:[^\p{Cc}]*$/u.test(text))
    throw usageError(`proxy.credentials: ${where} does not contain a user and a password`, 'Expected form: USER:PASSWORD, on one line');
  const [user, password] = [text.slice(0, text.indexOf(':')), text.slice(text.indexOf(':') + 1)];
  return new Secret([user, password].map(encodePart).join(':'));
}

/** Also encodes the apostrophe, which cannot be in a quoted value of an environment file. */
function encodePart(text: string): string {
  return encodeURIComponent(text).replaceAll("'", '%27');
}

async function readProgram(services: FleetRunPorts, path: string): Promise<LargeFile> {
  return (await services.readProgram(path)) as LargeFile;
}

/** Follows redirects: the fingerprint authenticates the key, regardless of the server. */
async function fetchKey({ web, signal }: FleetRunPorts, source: string): Promise<string> {
  const refuse = (why: string): AppError =>
    new AppError({
      code: 'INSTALL_KEY_UNREACHABLE',
      message: `cannot fetch ${source}: ${why}`,
      hint: 'Check the URL and the proxy, or save the key to a file and set key to the path of the file',
    });
  let url = source;
  for (let i = 0; i <= MAX_REDIRECTIONS; i++) {
    const answer = await web.get({ url, trust: { kind: 'machine' }, maxBytes: MAX_KEY_BYTES, signal });
    if (answer.kind === 'failed') throw refuse(answer.issue.kind);
    if (answer.status === 200) return answer.text;
    if (answer.status < 300 || answer.status > 399 || answer.location === null)
      throw refuse(`the server answered with status ${answer.status}`);
    url = new URL(answer.location, url).href;
    if (!url.startsWith('https:')) throw refuse('the server redirects to a URL without TLS');
  }
  throw refuse(`the server redirects more than ${MAX_REDIRECTIONS} times`);
}
