import { AppError } from '../../base/errors.ts';
import { revealText } from '../../base/text/secret.ts';
import { encodeYaml } from '../../codec/yaml-encode.ts';
import { observe } from '../../host/access/observe.ts';
import { describeCommit } from '../../host/commit/commit-problems.ts';
import { type CommitRecord, commitRecord } from '../../host/commit/record.ts';
import { combineFacts } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { initSystem } from '../../host/facts/init-system.ts';
import type { FileFact } from '../../host/facts/query.ts';
import { definePhase, type PhaseContext } from '../../host/phase.ts';
import type { Change, HostChange, PhasePlan } from '../../host/plan/change.ts';
import { type DesiredFile, diffDirectory, diffFile, previousFile } from '../../host/plan/diff-file.ts';
import { revertChanges } from '../../host/plan/revert.ts';
import { UNIT_FILE_PATHS } from '../../host/systemd/kubelet-unit-paths.ts';
import { KUBELET_CONFIG_FILE, KUBERNETES_DIR } from '../../kube/well-known.ts';
import { fieldsToShow } from '../../kubelet/diff/diff-configs.ts';
import { encodeKubeletConfiguration } from '../../kubelet/documents/encode.ts';
import { effectiveOf, type KubeletReading, type SetupChange } from '../../kubelet/effective/field-changes.ts';
import { healthzUrl } from '../../kubelet/effective/healthz-url.ts';
import type { KubeletSetup } from '../../kubelet/effective/kubelet-setup.ts';
import { verifySetup } from '../../kubelet/effective/verify-setup.ts';
import { CONFIG_DROP_IN_NAMES, isOwnConfigDropIn, ownConfigDropInPaths } from '../../kubelet/facts/own-config-drop-ins.ts';
import type { HealthState } from '../../kubelet/health/observe.ts';
import { isHealthy, kubeletHealth } from '../../kubelet/health/observe.ts';
import { isConfigzReadable, type KubeletVerification } from '../../kubelet/health/observe-change.ts';
import { verifyShutdown } from '../../kubelet/health/shutdown-lock.ts';
import { prepareVerification } from '../../kubelet/health/verify-change.ts';
import { type HealthTarget, waitForHealthyKubelet, waitForStartedKubelet } from '../../kubelet/health/wait-healthy.ts';
import { hashInPath } from '../../kubelet/node-agent/layout.ts';
import { managerStatePaths, outdatedManagerStates } from '../../kubelet/workload/manager-states.ts';
import { NODE_SETTINGS_PATH } from '../node-settings/node-settings.ts';
import { planRestart, UNIT, withImpact } from './kubelet-restart.ts';

export interface KubeletStartInput {
  /**
   * Credential files of a new node, written before its other files. /etc/kubernetes is created for them and for
   * other components. Absent: an existing node.
   */
  readonly credentials?: readonly DesiredFile[];
  readonly files: readonly DesiredFile[];
  /**
   * Node settings of a takeover, with the kept flags: written before the unit files that replace these flags, so that a run
   * that was killed finds them. Absent: no takeover.
   */
  readonly settings?: DesiredFile | undefined;
  /** Files among them that systemd reads: a change requires a daemon-reload. */
  readonly unitFiles: readonly DesiredFile[];
  /** Files that are removed, if they exist. Absent: none but own drop-in files that are not among `files`. */
  readonly removed?: readonly string[] | undefined;
  /** Directories to create before the files are written. */
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  readonly health: HealthTarget;
  /** False for a user without permission to chown (an unprivileged `--rootfs`). */
  readonly mayChown: boolean;
  /** A directory for copies of the files that are replaced. */
  readonly backupDir?: string;
  /** Copy config.yaml also if it is not replaced, as kubeadm does in every upgrade: this run upgrades the control plane. */
  readonly copiesConfig?: boolean;
  /** Verifies a change at the API server before it is confirmed. */
  readonly verification?: KubeletVerification;
  /** How the kubelet reads its files. Absent: the changed fields of a running kubelet are unknown. */
  readonly reading?: KubeletReading;
  /** What the kubelet reads before and after the change. Absent: unknown. */
  readonly setups?: SetupChange;
}

interface KubeletStartFacts {
  readonly files: ReadonlyMap<string, FileFact | null>;
  /** The state files of the kubelet's managers. */
  readonly states: ReadonlyMap<string, FileFact | null>;
  /** Files on the host that the run removes. Own drop-in files that it does not write belong to layers that no longer exist. */
  readonly outdated: ReadonlyMap<string, FileFact | null>;
  readonly init: 'systemd' | 'openrc' | null;
  readonly health: HealthState;
  /** A change that was not confirmed, or was rolled back. */
  readonly commit: CommitRecord | null;
  /** According to the current configuration, which the new one may change. */
  readonly before: { readonly url: string | null; readonly health: HealthState };
}

/**
 * Writes the kubelet files and (re)starts the kubelet only if a file changed or the kubelet does not run. If
 * the kubelet was healthy before and is not afterwards, the previous files are restored.
 */
function writeKubeletFiles(name: string, short: string) {
  return definePhase<KubeletStartInput, KubeletStartFacts>({
    name,
    short,
    changesKubelet: true,
    needsNoAddress: true,
    observe: observeKubelet,
    plan: planKubeletStart,
    verify: async (context, input, facts) => {
      if (facts.init !== 'systemd') return undefined;
      const { reading, verification, health, setups } = input;
      // In a crash loop, a Node may report Ready between two exits. The kubelet of a new node has crashed for want of its files.
      const isStable = setups?.before == null || (isHealthy(facts.before.health) && facts.before.health.unit?.restarts === 0);
      const lasts = await waitForStartedKubelet(context, name, health, isStable ? verification?.nodeName : undefined);
      if (reading !== undefined && setups?.before != null && isHealthy(facts.before.health)) {
        const change = { before: effectiveOf(setups.before, reading), after: effectiveOf(setups.after, reading) };
        await verifyShutdown(context, name, { ...change, mayLosePods: verification?.mayLosePods === true });
      }
      return lasts;
    },
    undo: (facts, applied) => (isHealthy(facts.before.health) ? undoKubeletStart(facts, applied) : null),
    verifyUndone: (context, input, { before }) => waitForHealthyKubelet(context, name, { ...input.health, url: before.url }),
    commit: {
      paths: [NODE_SETTINGS_PATH],
      prepare: async (context, input, _facts, changes) => {
        const { verification } = input;
        if (verification === undefined || !input.files.some(({ path }) => path === KUBELET_CONFIG_FILE)) return async () => undefined;
        const restarts = changes.some(({ kind }) => kind === 'restart-unit');
        const texts = provenTexts(input);
        const verify = await prepareVerification(context, verification, { phase: name, ...texts, restarts });
        const fields = restarts ? fieldsToShow(texts.before, texts.after, verification) : [];
        return async (deadline, checkOpen) => {
          const isAssigned = (path: string): boolean => hashInPath(path) !== null;
          const expected = { after: texts.after, fields };
          const unseen = fields.length === 0 ? null : await verifySetup(context, name, verification, expected, isAssigned);
          const unproven = await verify(deadline, checkOpen);
          if (unproven !== undefined || unseen === null || (await isConfigzReadable(context, verification))) return unproven;
          return `it is unknown whether the kubelet uses the new values of ${fields.join(', ')}: ${unseen}, and configz cannot be read`;
        };
      },
    },
  });
}

/** kubeadm 1.36: phase kubelet-start of init and join. */
export const kubeletStart = writeKubeletFiles('kubelet-start', 'Write the kubelet configuration and (re)start the kubelet');

/** kubeadm 1.36: upgrade phase kubelet-config, which leaves the restart to the user. */
export const upgradeKubeletConfig = writeKubeletFiles(
  'kubelet-config',
  'Write the kubelet configuration of the cluster and restart the kubelet',
);

/** All files and directories, in the order of their creation. */
function writtenBy({ credentials, files, directories }: KubeletStartInput): Pick<KubeletStartInput, 'files' | 'directories'> {
  if (credentials === undefined) return { files, directories };
  return { files: [...credentials, ...files], directories: [...directories, { path: KUBERNETES_DIR, mode: 0o755 }] };
}

function settingsOf({ settings }: KubeletStartInput): readonly DesiredFile[] {
  return settings === undefined ? [] : [settings];
}

/** The changes depend on the state of the unit. */
function unitUnknown(host: string): AppError {
  const message = 'systemctl show kubelet printed no state of the unit, although systemd runs on the host';
  const hint = 'Run systemctl show kubelet on the host and check its output';
  return new AppError({ host, code: 'KUBELET_UNIT_UNKNOWN', message, hint }, { exitCode: 3 });
}

async function observeKubelet({ host, signal }: PhaseContext, input: KubeletStartInput): Promise<KubeletStartFacts> {
  const { files: ownFiles, directories } = writtenBy(input);
  const paths = [...settingsOf(input), ...input.unitFiles, ...ownFiles, ...directories].map(({ path }) => path);
  const statePaths = input.reading === undefined ? [] : managerStatePaths(input.reading.rootDir);
  const queried = combineFacts({
    common: COMMON_FACTS,
    files: fileFacts(paths),
    states: fileFacts(statePaths),
    health: kubeletHealth(input.health.url),
  });
  const found = await observe(host, queried, signal);
  const { health, states } = found;
  const { init, commit, configDropIns, unitFiles } = found.common;
  if (init === 'systemd' && health.unit === null) throw unitUnknown(host.name);
  const url = currentHealthzUrl(input);
  const others = [...ownConfigDropInPaths(configDropIns).filter((path) => !paths.includes(path)), ...(input.removed ?? [])];
  const outdated = others.length === 0 ? new Map<string, FileFact>() : await observe(host, fileFacts(others), signal);
  const files = new Map([...found.files, ...unitFiles]);
  const before =
    url === undefined || url === input.health.url
      ? { url: input.health.url, health }
      : { url, health: await observe(host, kubeletHealth(url), signal) };
  return { files, states, outdated, init, health, commit, before };
}

/** The healthz URL of the running kubelet, which the new configuration may change; undefined when it is not known. */
function currentHealthzUrl({ setups, reading }: KubeletStartInput): string | null | undefined {
  const config = setups?.before == null || reading === undefined ? null : effectiveOf(setups.before, reading);
  return config === null ? undefined : healthzUrl(config);
}

const COMMON_FACTS = combineFacts({
  unitFiles: fileFacts(UNIT_FILE_PATHS),
  init: initSystem,
  commit: commitRecord,
  configDropIns: CONFIG_DROP_IN_NAMES,
});

function planKubeletStart(facts: KubeletStartFacts, input: KubeletStartInput): PhasePlan {
  const found = (path: string): FileFact | null => facts.files.get(path) ?? null;
  const written = writtenBy(input);
  const directories = written.directories
    .map(({ path, mode }) => diffDirectory(found(path), path, mode))
    .filter((change) => change !== null);
  const diff = (file: DesiredFile): HostChange | null => diffFile(found(file.path), file, { mayChown: input.mayChown });
  const unitFiles = input.unitFiles.map(diff).filter((change) => change !== null);
  const files = written.files.map(diff).filter((change) => change !== null);
  const removed = planRemovals(facts);
  const settings = settingsOf(input).flatMap((file) => diff(file) ?? []);
  const replaced = [...unitFiles, ...files].flatMap((change) =>
    change.kind === 'write-file' && change.before !== null ? [{ path: change.path, ...change.before }] : [],
  );
  const config = input.copiesConfig === true ? found(KUBELET_CONFIG_FILE) : null;
  const isCopied = config === null || replaced.some(({ path }) => path === KUBELET_CONFIG_FILE);
  const copied = isCopied ? replaced : [...replaced, { path: KUBELET_CONFIG_FILE, content: config.content ?? '', owner: config.owner }];
  const backup = planBackup(copied, input.backupDir);
  const writes = [...directories, ...backup, ...settings, ...unitFiles, ...files, ...removed];
  if (facts.init !== 'systemd') return planWithoutSystemd(facts.init, writes);
  const restart = planRestart(facts, unitFiles.length > 0, { writes: [...unitFiles, ...files, ...removed], setups: input.setups });
  const states = restart.some(({ kind }) => kind === 'restart-unit') ? planStates(facts, input) : [];
  const changes = [...withImpact(isHealthy(facts.before.health), input, [...states, ...writes, ...restart]), ...planConfirmation(facts)];
  const { commit } = facts;
  const warnings = commit?.state === 'reverted' ? [{ code: 'COMMIT_REVERTED', message: describeCommit(commit) }] : [];
  const reported = warnings.length === 0 ? {} : { warnings };
  return changes.length === 0
    ? { changes, noop: 'the files are unchanged and the kubelet is healthy', ...reported }
    : { changes, ...reported };
}

/**
 * Removes the drop-in files of layers that no longer exist. They go after all writes: one of these is newer than the
 * running kubelet, so an interrupted run is continued with its restart.
 */
function planRemovals({ outdated }: KubeletStartFacts): readonly HostChange[] {
  return [...outdated].flatMap(([path, file]): readonly HostChange[] => {
    if (file === null || file.type !== 'file') return [];
    const reason = isOwnConfigDropIn(path) ? 'no setting of this node uses the file any more' : 'the file did not exist before';
    return [{ kind: 'remove-file', path, before: previousFile(file), reason }];
  });
}

/** The configurations to prove: what the kubelet reads from all its files and flags, else the text of config.yaml. */
function provenTexts({ setups, reading, files }: KubeletStartInput): { readonly before: string | null; readonly after: string } {
  const configYaml = files.find(({ path }) => path === KUBELET_CONFIG_FILE);
  const plain = { before: null, after: configYaml === undefined ? '' : revealText(configYaml.content) };
  if (setups === undefined || reading === undefined) return plain;
  const { before, after } = setups;
  const type = reading.catalogue.configurationType(reading.minor);
  const textOf = (setup: KubeletSetup): string | null => {
    const config = effectiveOf(setup, reading);
    if (config === null) return null;
    // configz does not show the effect of this flag.
    const hidden = setup.flags.some(({ name }) => name === 'seccomp-default') ? { seccompDefault: false } : {};
    return encodeYaml(encodeKubeletConfiguration({ ...config, ...hidden }, reading), type);
  };
  const desired = textOf(after);
  return desired === null ? plain : { before: before === null ? null : textOf(before), after: desired };
}

/**
 * Removes the state files with which the new kubelet would exit. A running kubelet is stopped first, because it writes
 * them whenever a container starts or ends.
 */
function planStates(facts: KubeletStartFacts, input: KubeletStartInput): readonly HostChange[] {
  const { reading, setups } = input;
  if (reading === undefined || setups === undefined) return [];
  const { before, after } = setups;
  const desired = effectiveOf(after, reading);
  if (desired === null) return [];
  const present = before === null ? null : effectiveOf(before, reading);
  const found = new Map([...facts.states].flatMap(([path, file]) => (file?.content === undefined ? [] : [[path, file.content] as const])));
  const outdated = outdatedManagerStates({ before: present, after: desired }, reading.rootDir, found);
  if (outdated.length === 0) return [];
  const runs = facts.health.unit?.activeState === 'active' || facts.health.unit?.activeState === 'activating';
  return [
    ...(runs ? [{ kind: 'stop-unit', unit: UNIT, reason: 'a running kubelet writes the state files' } as const] : []),
    ...outdated.flatMap(({ path, content, reason }): HostChange[] => {
      const file = facts.states.get(path);
      const owned = file && { content, mode: file.mode, owner: file.owner };
      return owned ? [{ kind: 'remove-file', path, before: owned, volatile: true, reason }] : [];
    }),
  ];
}

/** Confirms a change of a run that was killed before it confirmed it. */
function planConfirmation({ commit }: KubeletStartFacts): readonly HostChange[] {
  return commit?.state === 'armed' ? [{ kind: 'confirm-commit', id: commit.id, reason: describeCommit(commit) }] : [];
}

/** Copies of files in a separate directory. kubeadm keeps config.yaml this way in upgrades. */
function planBackup(
  files: readonly { readonly path: string; readonly content: string; readonly owner: string }[],
  directory: string | undefined,
): readonly HostChange[] {
  if (directory === undefined || files.length === 0) return [];
  const copies = files.map(({ path: source, content, owner }): HostChange => {
    const path = `${directory}/${source.replace(/^.*\//, '')}`;
    const reason = `backup of ${source}`;
    return { kind: 'write-file', path, mode: 0o600, owner, action: 'create', content, before: null, reason };
  });
  return [{ kind: 'make-directory', path: directory, mode: 0o700, owner: 'root:root', reason: 'for backups of replaced files' }, ...copies];
}

function planWithoutSystemd(init: KubeletStartFacts['init'], changes: readonly Change[]): PhasePlan {
  const where =
    init === 'openrc'
      ? 'the host uses OpenRC: restart the kubelet manually (rc-service kubelet restart)'
      : 'systemd does not run on the host: the kubelet starts when the host boots with these files';
  return { changes, deferred: where, ...(changes.length === 0 ? { noop: 'the files are unchanged' } : {}) };
}

/** Restores the previous files and restarts the kubelet with them. */
function undoKubeletStart(facts: KubeletStartFacts, applied: readonly HostChange[]): readonly HostChange[] | null {
  const files = revertChanges(applied);
  if (files.length === 0) return null;
  const reason = 'rolling back to the previous configuration';
  const reload: readonly HostChange[] = applied.some((change) => change.kind === 'daemon-reload')
    ? [{ kind: 'daemon-reload', reason }]
    : [];
  // A running kubelet would overwrite the restored state files.
  const stop: readonly HostChange[] = applied.some((change) => change.kind === 'stop-unit')
    ? [{ kind: 'stop-unit', unit: UNIT, reason }]
    : [];
  return facts.init === 'systemd' ? [...stop, ...files, ...reload, { kind: 'restart-unit', unit: UNIT, reason }] : files;
}
