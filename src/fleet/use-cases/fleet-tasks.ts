import { basename, join } from 'node:path';
import { type Problem, usageError } from '../../base/errors.ts';
import type { LocalFiles } from '../../base/local-files.ts';
import { IMPORT_IMAGES } from '../../kubeadm/phases/import-images.ts';
import type { PreparedRollout } from '../../maintenance/gates/rollout-settings.ts';
import { parseAmount } from '../amount.ts';
import { selectHosts } from '../file/select.ts';
import type { PlanSigner, SignerFiles } from '../plan/plan-signatures.ts';
import { hostsToApply, plannedRun, type SavedHost, type SavedPlan } from '../plan/saved-plan.ts';
import type { FleetFilePorts } from '../ports.ts';
import type { FleetRunInput } from './fleet-members.ts';
import type { FleetRunRequest } from './fleet-request.ts';
import type { CanaryChoice } from './fleet-rules.ts';
import { readValidFleet } from './load-fleet.ts';
import { readSavedPlan, requireUnexpired, type SavedPlanPorts } from './read-saved-plan.ts';

/** The hosts and operations of a run, from a fleet file or a saved plan. */
export interface FleetTasks extends Omit<FleetRunInput, 'reporter'> {
  /** The subject of the run in its journal: the fleet file, or the plan. */
  readonly subject: string;
  /** The absolute path of the fleet file; `-` for standard input. */
  readonly fleetFile: string;
  readonly warnings: readonly Problem[];
  /** Selected hosts of a saved plan that were not planned (unreachable, refused): nothing is applied to them. */
  readonly unplanned: readonly Problem[];
  /** Names of the selected hosts on which the saved plan changes nothing. */
  readonly unchanged: readonly string[];
  /** The hosts that the canaries are chosen from, and those of a saved plan. */
  readonly canaries: CanaryChoice;
  /** The gates and windows of the fleet file or the saved plan; null: none. */
  readonly rollout: PreparedRollout | null;
  /** The API server a saved plan was made with. */
  readonly server: string | null;
  /** The verified signer of a saved plan; null: the signature was not verified. */
  readonly signer: PlanSigner | null;
  /**
   * Flags of the plan, which replace those of the command line; the loss of pods can be permitted by either, and
   * `--allow` of the command line replaces the class of the plan.
   */
  readonly request: FleetRunRequest;
}

/** The subject of an `apply`. */
export interface AppliedRequest {
  /** A saved plan; undefined: the fleet file is applied. */
  readonly planFile: string | undefined;
  /** One of these signers must have signed the plan; undefined: a signature is not required. */
  readonly signers?: SignerFiles | undefined;
}

/**
 * The hosts of the fleet file of `-f` or of a saved plan.
 * @throws AppError with exit code 2
 */
export async function readTasks(services: FleetFilePorts & SavedPlanPorts, request: AppliedRequest & FleetRunRequest): Promise<FleetTasks> {
  const { planFile, selection } = request;
  if (planFile !== undefined) return tasksOfPlan(services, request, planFile);
  if (request.signers !== undefined)
    throw usageError('--require-signature requires a saved plan', 'Pass the plan: kubeletadm apply plan.json --require-signature FILE');
  if (request.replan)
    throw usageError('--replan requires a saved plan', 'Omit --replan: kubeletadm apply -f fleet.yaml always makes a new plan');
  if (request.again)
    throw usageError('--again requires a saved plan', 'Omit --again: kubeletadm apply -f fleet.yaml can be repeated at any time');
  const fleet = await readValidFleet(services, request);
  const selected = selectHosts(fleet.hosts, selection);
  return {
    tasks: selected.map((host) => ({ host })),
    canaries: { selected },
    rollout: fleet.rollout,
    warnings: fleet.warnings,
    unplanned: [],
    unchanged: [],
    hosts: fleet.hosts,
    cluster: fleet.cluster,
    file: fleet.file,
    subject: subjectOf(services, fleet.file),
    fleetFile: subjectOf(services, fleet.file),
    server: null,
    signer: null,
    request,
  };
}

/** The subject of the runs over a fleet file. */
export function subjectOf({ absolutePath }: Pick<LocalFiles, 'absolutePath'>, file: string): string {
  return file === '-' ? '-' : absolutePath(file);
}

async function tasksOfPlan(
  services: FleetFilePorts & SavedPlanPorts,
  request: AppliedRequest & FleetRunRequest,
  planFile: string,
): Promise<FleetTasks> {
  if (request.file !== undefined)
    throw usageError(
      'a saved plan needs no fleet file',
      /^[^/]*:\d+$/.test(planFile)
        ? `If ${planFile} is the address of the live page, write --serve=${planFile}`
        : 'Pass one of the two: kubeletadm apply plan.json, or kubeletadm apply -f fleet.yaml',
    );
  const { plan, signer } = await readSavedPlan(services, { file: planFile, signers: request.signers });
  requireUnexpired(plan, planFile, services.clock.now());
  const { fleet, cluster, server, takeOver } = plan;
  if (request.bundle === undefined && plan.hosts.some(usesBundle))
    throw usageError(`${planFile} was made with a bundle`, 'Pass the same bundle: kubeletadm apply PLAN --bundle FILE');
  const tasks = hostsToApply(plan);
  const selected = plan.hosts.length === 0 ? [] : selectHosts(plan.hosts, request.selection);
  const names = new Set(selected.map(({ name }) => name));
  return {
    tasks: tasks.filter(({ host }) => names.has(host.name)),
    warnings: [],
    unplanned: selected.flatMap(notPlanned),
    unchanged: selected.flatMap(({ name, status }) => (status === 'unchanged' ? [name] : [])),
    canaries: { selected, planned: plan.canary },
    rollout: plan.rollout ?? null,
    hosts: tasks.map(({ host }) => host),
    cluster,
    file: `${fleet.directory}/fleet`,
    subject: plan.id,
    fleetFile: fleet.file === '-' ? '-' : join(fleet.directory, basename(fleet.file)),
    server,
    signer,
    request: {
      ...withPlan(request, plan, signer),
      takeOver,
      rules: {
        ...(plan.order === undefined ? {} : { order: plan.order }),
        ...request.rules,
        maxUnavailable: request.rules.maxUnavailable ?? parseAmount(plan.maxUnavailable ?? ''),
      },
      run: plannedRun(plan, request.run),
    },
  };
}

function usesBundle({ operations }: SavedHost): boolean {
  return operations?.some(([what]) => what.startsWith(`${IMPORT_IMAGES} `)) === true;
}

/** Names the plan in the record of each changed host. */
function withPlan(request: FleetRunRequest, { id, validity }: SavedPlan, signer: PlanSigner | null): FleetRunRequest {
  const { note, ...writing } = request.writing;
  if (note === undefined) return request;
  const again = request.again ? true : undefined;
  return { ...request, writing: { ...writing, note: { ...note, plan: id, planDigest: validity.digest, again, signer } } };
}

/** A host without operations in the saved plan: reports the problem from planning. */
function notPlanned({ name, status, problems = [] }: SavedHost): readonly Problem[] {
  if (status === 'pending' || status === 'unchanged') return [];
  const [first] = problems;
  const why = first === undefined ? `: ${status}` : reasonOf(first.replace(`${name}: `, ''));
  const message = `the saved plan has no changes for this host, because planning failed${why}`;
  return [{ host: name, code: 'HOST_NOT_PLANNED', message, hint: 'Fix the cause and create a new plan' }];
}

/** ` (CODE): message` of a formatted problem. Its hint is omitted, because it concerns the command that planned. */
function reasonOf(problem: string): string {
  const [, text = problem, code] = /^(.*) \[([A-Z0-9_]+)\]$/s.exec(problem) ?? [];
  const message = text.replace(/[.] [A-Z].*$/s, '');
  return code === undefined ? `: ${message}` : ` (${code}): ${message}`;
}
