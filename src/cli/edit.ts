import { AppError, type ExitCode, isAppError, type Problem, usageError } from '../base/errors.ts';
import { type Json, jsonEqual } from '../base/json.ts';
import { hostEntryText } from '../fleet/file/host-entry.ts';
import { hostNamed, patternOf } from '../fleet/file/select.ts';
import type { ApplyFleetRequest } from '../fleet/use-cases/apply-fleet.ts';
import { checkFleet, fleetFileOf, readValidFleet } from '../fleet/use-cases/load-fleet.ts';
import { openNodeNames } from '../fleet/use-cases/named-hosts.ts';
import type { DynamicResetRequest } from './dynamic-assign.ts';
import { type EditedText, editText } from './edit-text.ts';
import type { Services } from './output/services.ts';
import { type PlanRequest, requireTerminal, type WithPlan } from './output/show-plan.ts';

/** `edit`: a fleet file, a host of it, or the assigned configuration of a Node. */
export interface EditRequest {
  /** A host of the fleet file, else a Node; undefined: the whole fleet file. `node/NAME` is a Node. */
  readonly name: string | undefined;
  readonly yes: boolean;
  readonly output: PlanRequest;
  readonly fleet: ApplyFleetRequest;
  readonly node: WithPlan<DynamicResetRequest> & {
    readonly allowPodLoss: boolean;
    /** SSH key with which the edited configuration of a Node is signed. */
    readonly sign: string | undefined;
  };
}

/** `edit [fleet|HOST|NODE]`. */
export async function runEdit(services: Services, request: EditRequest): Promise<ExitCode> {
  const { name, yes, output } = request;
  if (!yes) requireTerminal(services, output, 'edit');
  const host = name === undefined ? undefined : await hostOfFile(services, request, name);
  if (name !== undefined && host === undefined) return editNode(services, request, name);
  return editFleet(services, request, host);
}

/** The host of the fleet file with this name; undefined: a Node. */
async function hostOfFile(services: Services, { fleet: { file } }: EditRequest, name: string): Promise<string | undefined> {
  const path = fleetFileOf(file);
  if (patternOf(name).isNode) return undefined;
  const isRead =
    file !== undefined || ((await services.input.exists(path)) && (await services.input.readText(path)).includes('kubeletadm.dev/'));
  return isRead ? hostNamed((await checkFleet(services, path)).fleet.hosts, name)?.name : undefined;
}

/** Edits a fleet file, or the entry of one host, writes it after the question, and applies it. */
async function editFleet(services: Services, { fleet, yes, output }: EditRequest, host: string | undefined): Promise<ExitCode> {
  const file = fleetFileOf(fleet.file);
  if (file === '-') throw usageError('standard input cannot be edited', 'Pass the path of the fleet file with -f');
  const original = await services.input.readText(file);
  await services.requireWritable(file, { isEdited: true });
  const part = host === undefined ? whole(original) : entryOf(original, file, host);
  const edited = await editText(services, {
    text: part.text,
    name: `${host ?? 'fleet'}.yaml`,
    notes: part.notes,
    validate: async (text) => {
      const problems = await fleetErrors(withText(services, file, part.replace(text)), fleet, host);
      return problems.map((problem) => part.place(problem));
    },
  });
  if (edited === null) return cancelled(services);
  const text = part.replace(edited.text);
  let isWritten = false;
  const write = async (): Promise<void> => {
    if ((await services.input.readText(file)) !== original) throw changedMeanwhile(file, `kubeletadm edit -f ${file}`);
    await services.writeLocalFile(file, text, { isEdited: true });
    isWritten = true;
    services.output.stderr(`${file} was written\n`);
  };
  const selection = host === undefined ? fleet.selection : { limit: part.hosts, groups: [] };
  return finish(
    edited,
    async () => {
      if (yes) await write();
      const { applyAndPrint } = await import('./fleet-apply-command.ts');
      const failure = await applyAndPrint(withText(services, file, text), { ...fleet, file, selection, output }, { approved: write });
      if (failure !== null) throw failure;
      if (!isWritten && (await services.confirm(`No host is changed by this edit. Write ${file}? [y/N] `)) !== true)
        throw new AppError({ code: 'DECLINED', message: `${file} was not changed` });
      if (!isWritten) await write();
      return 0;
    },
    () => isWritten,
  );
}

function whole(text: string) {
  return { text, notes: [], hosts: [], replace: (edited: string) => edited, place: (problem: Problem): Problem => problem };
}

/** The entry of a host; problems of the file are those of its lines. */
function entryOf(original: string, file: string, host: string) {
  const entry = hostEntryText(original, host);
  if (entry === null || entry === 'flow') {
    const message =
      entry === null
        ? `${file} has no entry for the host ${host}, which is imported`
        : `the entry of ${host} in ${file} has no lines of its own`;
    throw new AppError({ code: 'EDIT_NOT_POSSIBLE', message, hint: `Edit the whole file: kubeletadm edit -f ${file}` }, { exitCode: 3 });
  }
  const { hosts, linesBefore, indentation } = entry;
  const others = hosts.length === 1 ? [] : [`This entry of ${file} declares ${hosts.length} hosts, all of which the edit changes.`];
  const place = (problem: Problem): Problem => {
    const { position } = problem;
    if (position === undefined || position.file !== file || position.line <= linesBefore) return problem;
    return { ...problem, position: { ...position, line: position.line - linesBefore, column: Math.max(1, position.column - indentation) } };
  };
  return { ...entry, notes: others, place };
}

/** The errors of the edited file, before a host is contacted. */
async function fleetErrors(services: Services, fleet: EditRequest['fleet'], host: string | undefined): Promise<readonly Problem[]> {
  try {
    const { hosts } = await readValidFleet(services, fleet);
    if (host === undefined || hosts.some(({ name }) => name === host)) return [];
    return [
      {
        code: 'EDIT_INVALID',
        message: `the entry no longer declares the host ${host}`,
        hint: 'To rename or remove a host, edit the whole file',
      },
    ];
  } catch (error) {
    if (!isAppError(error)) throw error;
    return error.problems;
  }
}

/** These ports, with another text of a file. */
function withText(services: Services, file: string, text: string): Services {
  const { input } = services;
  return { ...services, input: { ...input, readText: async (path) => (path === file ? text : input.readText(path)) } };
}

function changedMeanwhile(what: string, again: string): AppError {
  const message = `${what} was changed during the edit, and was not written`;
  return new AppError({ code: 'EDIT_CONFLICT', message, hint: `Compare the two, then run ${again} again` }, { exitCode: 3 });
}

/** Edits the assigned configuration of a Node, stores it as a new ConfigMap, and assigns it to this Node. */
async function editNode(services: Services, { node: request, yes }: EditRequest, word: string): Promise<ExitCode> {
  const [{ payloadErrors, readNodePayload }, { withCluster }, { runDynamicEdit }] = await Promise.all([
    import('../dynamic/use-cases/read-payload.ts'),
    import('../kubeadm/use-cases/lazy-cluster.ts'),
    import('./dynamic-assign.ts'),
  ]);
  const { sign, choice, ...settings } = request;
  const [name = patternOf(word).name] = await openNodeNames(services, request.cluster, choice);
  const read = () => withCluster(services, request.cluster, (cluster) => readNodePayload(cluster, name, sign !== undefined));
  const payload = await read();
  const { source, target, others } = payload;
  const assigned =
    source === null
      ? 'Nothing is assigned; this is an empty overlay.'
      : `ConfigMap ${source.namespace}/${source.name}, key ${source.kubeletConfigKey}`;
  const edited = await editText(services, {
    text: payload.text,
    name: `${name}.yaml`,
    notes: [`Node ${name}: ${assigned}`],
    validate: async (text) => payloadErrors(payload, text),
  });
  if (edited === null) return cancelled(services);
  const texts = new Map([[EDITED, edited.text], ...Object.entries(others).map(([key, text]) => [`${EDITED}/${key}`, text] as const)]);
  const input = { ...services.input, readText: async (path: string) => texts.get(path) ?? services.input.readText(path) };
  const pushed = {
    ...target,
    file: EDITED,
    additionalFiles: Object.keys(others).map((key) => ({ key, file: `${EDITED}/${key}` })),
    appendHash: true,
    inPlace: false,
    signing: sign === undefined ? null : { key: sign, revision: null, nodes: null },
    validation: { kubernetesVersion: undefined, skipValidation: false },
  };
  const change = { ...settings, choice, assigned: { kind: 'file', pushed, expected: { source } }, force: false } as const;
  return finish(
    edited,
    async () => {
      const now = await read();
      // A ConfigMap that is not immutable may have other content than the edit started from.
      if (source !== null && isSame(now.source, source) && !isSame([now.text, now.others], [payload.text, others]))
        throw changedMeanwhile(`ConfigMap ${source.namespace}/${source.name}`, `kubeletadm edit node/${name}`);
      return runDynamicEdit({ ...services, input }, change, { asks: !yes });
    },
    () => false,
  );
}

/** Whether two values are equal as JSON. */
function isSame(one: unknown, other: unknown): boolean {
  return jsonEqual(one as Json, other as Json);
}

/** The path of the edited configuration in messages. */
const EDITED = 'the edited configuration';

function cancelled({ output }: Services): ExitCode {
  output.stdout('Edit cancelled, no changes made.\n');
  return 0;
}

/** Keeps the copy of the edited text if nothing was written. */
async function finish(edited: EditedText, work: () => Promise<ExitCode>, isWritten: () => boolean): Promise<ExitCode> {
  try {
    const exitCode = await work();
    await edited.discard();
    return exitCode;
  } catch (error) {
    if (isWritten()) await edited.discard();
    throw !isWritten() && isAppError(error) ? edited.kept(error) : error;
  }
}
