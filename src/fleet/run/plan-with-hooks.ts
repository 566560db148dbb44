import { AppError, isAppError } from '../../base/errors.ts';
import { printable } from '../../base/text/printable.ts';
import { type Secret, SensitiveText } from '../../base/text/secret.ts';
import { applyHostChanges } from '../../host/apply.ts';
import { type HostHook, type HostHooks, hookText, readHookFailure } from '../../host/hooks.ts';
import type { SecretSource } from '../../host/operation/install-model.ts';
import type { HookName } from '../../host/operation/operation.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { type Change, type HostChange, isClusterChange } from '../../host/plan/change.ts';
import type { HostPlan, NamedPhasePlan } from '../../host/plan/document.ts';
import type { PlanStep } from '../../host/plan-after.ts';
import { runHost } from '../../host/run-host.ts';
import { NODE_SETTINGS_PATH } from '../../kubeadm/node-settings/node-settings.ts';

/** The phases of hooks in a plan. */
const PHASES = { beforeChange: 'before-change', afterChange: 'after-change' } as const satisfies Record<HookName, string>;

/** Output lines of a failed hook that are reported. */
const MOST_LINES = 20;
const MOST_CHARACTERS = 300;

/**
 * Plans a workflow with the hooks of its host as first and last phase. Hooks are planned only if the workflow changes
 * the host itself: without a change, and for changes of API objects alone, no hook runs.
 * @param name the host in the fleet file
 * @param readSecret reads the secrets of the hooks when the host is planned: a missing one refuses the host
 */
export function planWithHooks(name: string, hooks: HostHooks | undefined, step: PlanStep, readSecret: ReadSecret): PlanStep {
  if (hooks === undefined) return step;
  return async (context) => {
    const planned = await step(context);
    const phases = changedPhases(planned.host);
    if (phases.length === 0) return planned;
    const phasesOf = (hook: HookName): readonly NamedPhasePlan[] => {
      const declared = hooks[hook];
      return declared === null
        ? []
        : [{ phase: PHASES[hook], plan: { changes: [hookChange(hook, declared, { name, phases, host: planned.host })] } }];
    };
    const [before, after] = [phasesOf('beforeChange'), phasesOf('afterChange')];
    const secrets = {
      beforeChange: await readSecrets(hooks.beforeChange, readSecret),
      afterChange: await readSecrets(hooks.afterChange, readSecret),
    };
    const around = (host: HostPlan): HostPlan => ({ ...host, phases: [...before, ...host.phases, ...after] });
    return {
      ...planned,
      host: around(planned.host),
      apply: async (applyContext) => {
        await runHooks(before, secrets.beforeChange, applyContext);
        const applied = await planned.apply(applyContext);
        await runHooks(after, secrets.afterChange, applyContext);
        return around(applied);
      },
    };
  };
}

type ReadSecret = (source: SecretSource) => Promise<Secret>;
type Secrets = Readonly<Record<string, SensitiveText>>;

async function readSecrets(hook: HostHook | null, readSecret: ReadSecret): Promise<Secrets> {
  const sources = Object.entries(hook?.env ?? {});
  return Object.fromEntries(
    await Promise.all(sources.map(async ([name, source]) => [name, new SensitiveText([await readSecret(source)])] as const)),
  );
}

/** The phases that change the host, or may change it when they are planned later. */
function changedPhases({ phases }: HostPlan): readonly string[] {
  return phases.filter(({ plan }) => plan.changes.some(isOwnChange) || plan.deferred !== undefined).map(({ phase }) => phase);
}

/** A change of the host; not the confirmation of an earlier change, and not the record of the declared settings. */
function isOwnChange(change: Change): boolean {
  return !isClusterChange(change) && change.kind !== 'confirm-commit' && !('path' in change && change.path === NODE_SETTINGS_PATH);
}

function hookChange(
  hook: HookName,
  { command, timeoutSeconds, layer, env }: HostHook,
  { name, phases, host }: { readonly name: string; readonly phases: readonly string[]; readonly host: HostPlan },
): HostChange {
  const node = host.own?.node;
  const environment = {
    KUBELETADM_HOOK: hook,
    KUBELETADM_HOST: name,
    ...(node === undefined ? {} : { KUBELETADM_NODE: node }),
    KUBELETADM_REASON: phases.join(','),
  };
  const secret = env === undefined ? '' : `, with the secrets ${Object.keys(env).join(', ')}`;
  return {
    kind: 'run-hook',
    hook,
    command,
    environment,
    timeoutSeconds,
    ...(env === undefined ? {} : { env }),
    reason: `${hook} of ${layer}, time limit ${timeoutSeconds}s${secret}`,
  };
}

/** Runs hooks under the lock of the host. */
async function runHooks(phases: readonly NamedPhasePlan[], secrets: Secrets, context: PhaseContext): Promise<void> {
  const { clock, writing, parseText, reporter, signal } = context;
  for (const { phase, plan } of phases) {
    // A hook needs no confirmation, and the lock must not end with the time limit of one.
    const host = runHost(context.host, { clock, parseText, writing: writing === undefined ? undefined : { ...writing, confirm: null } });
    reporter.report({ level: 'info', code: 'PHASE_STARTED', host: host.name, phase, message: 'run the hook', verbosity: 1 });
    const changes = plan.changes as readonly HostChange[];
    try {
      const withSecrets = changes.map((change) => (change.kind === 'run-hook' ? { ...change, secrets } : change));
      await applyHostChanges(host, withSecrets, { reporter, phase, isLast: true, signal });
    } catch (error) {
      throw hookFailed(masked(error, Object.values(secrets)), { phase, changes, context });
    } finally {
      await host.end();
    }
  }
}

/** Shorter lines of a secret are common words. */
const MIN_LINE = 6;

/** The error without the secrets, which the output of a hook may contain: whole, or line by line. */
function masked(error: unknown, secrets: readonly SensitiveText[]): unknown {
  if (!isAppError(error) || secrets.length === 0) return error;
  const values = secrets.flatMap((secret) => {
    const value = secret.reveal();
    return [value, ...value.split(/\r?\n/).filter((line) => line.length >= MIN_LINE)];
  });
  const longestFirst = values.toSorted((a, b) => b.length - a.length);
  // Callers distinguish errors by their class: an error without secrets is kept.
  if (!longestFirst.some((value) => textsOf(error).some((text) => text.includes(value)))) return error;
  const mask = (text: string): string => longestFirst.reduce((rest, value) => rest.replaceAll(value, '[secret]'), text);
  const problems = error.problems.map((problem) => ({ ...problem, message: mask(problem.message) }));
  const detail = error.detail === undefined ? undefined : mask(error.detail);
  return new AppError(problems, { exitCode: error.exitCode, detail, cause: masked(error.cause, secrets) });
}

function textsOf(error: unknown): readonly string[] {
  return isAppError(error) ? [error.message, error.detail ?? '', ...textsOf(error.cause)] : [];
}

/** Errors of an operation that the host executed. */
const EXECUTED = /^HOST_(?:NO_SPACE|READ_ONLY|PERMISSION_DENIED|OPERATION_FAILED)$/;

const CONSEQUENCES = {
  beforeChange: { exitCode: 3, hint: 'Nothing was changed. Fix the cause, then run the same command again' },
  afterChange: {
    exitCode: 1,
    hint: 'The change of the host succeeded and is kept. Fix the cause, then run the command of the hook by hand, for example with kubeletadm fleet exec',
  },
} as const;

/** The error of a failed hook, with its output as an event. Other errors (a lock, a lost connection) are returned as they are. */
function hookFailed(
  error: unknown,
  { phase, changes, context }: { readonly phase: string; readonly changes: readonly HostChange[]; readonly context: PhaseContext },
): unknown {
  const change = changes.find(({ kind }) => kind === 'run-hook');
  if (!isAppError(error) || !EXECUTED.test(error.code) || change?.kind !== 'run-hook') return error;
  const { host, reporter } = context;
  const { exitCode, timedOut, output } = readHookFailure(error.detail ?? '');
  const lines = output.slice(-MOST_LINES).map((line) => printable(line, MOST_CHARACTERS));
  if (lines.length > 1) {
    const message = `output of the hook ${change.hook}:\n${lines.map((line) => `  ${line}`).join('\n')}`;
    reporter.report({ level: 'warning', code: 'HOOK_OUTPUT', host: host.name, phase, message });
  }
  const ended = timedOut
    ? `did not finish within ${change.timeoutSeconds}s`
    : exitCode === null
      ? 'failed'
      : `exited with code ${exitCode}`;
  const last = lines.at(-1);
  const message = `the hook ${change.hook} (${printable(hookText(change.command), MOST_CHARACTERS)}) ${ended}${last === undefined ? '' : `: ${last}`}`;
  const { exitCode: code, hint } = CONSEQUENCES[change.hook];
  return new AppError({ host: host.name, code: 'HOOK_FAILED', message, hint }, { exitCode: code, cause: error, detail: error.detail });
}
