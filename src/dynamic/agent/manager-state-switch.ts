import { z } from 'zod';
import { isAppError } from '../../base/errors.ts';
import { type JsonObject, parseJsonObject } from '../../base/json.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { unitState } from '../../host/facts/unit.ts';
import type { Operation } from '../../host/operation/operation.ts';
import { textAt } from '../../kubelet/documents/values.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { layerRunningConfig } from '../../kubelet/effective/running-config.ts';
import { managerStatesFile, PAYLOAD_FILE } from '../../kubelet/node-agent/layout.ts';
import { MANAGER_STATES, managerStateTexts, outdatedManagerStates, rootDirOf } from '../../kubelet/workload/manager-states.ts';
import type { AgentOptions } from './agent-options.ts';
import type { CheckpointStore } from './checkpoint-store.ts';

/**
 * What a switch of the kubelet does with the state files of its managers: `save` before the kubelet is stopped (copies for a
 * rollback), `replace` while it is stopped (empty: it is not stopped), `finish` after the restart.
 */
type StateSwitch = Readonly<Record<'save' | 'replace' | 'finish', readonly Operation[]>>;

type ManagerStateOptions = Pick<AgentOptions, 'host' | 'catalogue' | 'directory' | 'localConfig'> & {
  readonly store: Pick<CheckpointStore, 'readCheckpoint'>;
};

export const NO_STATE_SWITCH: StateSwitch = { save: [], replace: [], finish: [] };

const SAVED = z.object({
  /** The configuration whose kubelet wrote the files; null: the local one. */
  of: z.string().nullable(),
  /** Content by path; null: the file did not exist, and the next kubelet may have created it. */
  files: z.record(z.string(), z.string().nullable()),
});

type SavedStates = z.infer<typeof SAVED>;

/**
 * Handles the state files of the managers in the switches of an agent. The copies are written before the first file is
 * removed, and removed when they are restored or a trial has ended well, so that a repeated switch has the same result.
 */
export function managerStateSwitches(options: ManagerStateOptions) {
  const { host } = options;
  const path = managerStatesFile(options.directory);
  const removal: Operation = { kind: 'remove-file', path };
  /** The copies; null: none, or damaged. */
  const readCopies = async (): Promise<{ readonly exists: boolean; readonly saved: SavedStates | null }> => {
    const text = (await observe(host, fileFacts([path]))).get(path)?.content;
    return { exists: text !== undefined, saved: SAVED.safeParse(parseJsonObject(text ?? '')).data ?? null };
  };
  return {
    /**
     * Plans the removal of the state files with which the kubelet would exit, or, for a rollback, their restoration.
     * @param from the configuration set before; null: the local one
     * @param to the configuration to set
     */
    plan: async (from: string | null, to: string | null): Promise<StateSwitch> => {
      const { exists, saved } = await readCopies();
      if (saved !== null && saved.of === to) return { save: [], replace: restored(saved), finish: [removal] };
      // A repeated switch has saved the files before.
      if (from === to) return NO_STATE_SWITCH;
      const found = await statesToReplace(from, to, options);
      if (found === null) return exists ? { ...NO_STATE_SWITCH, finish: [removal] } : NO_STATE_SWITCH;
      const earlier = saved !== null && saved.of === from ? saved.files : {};
      const files = Object.fromEntries(Object.entries(found.files).map(([name, content]) => [name, content ?? earlier[name] ?? null]));
      const record: SavedStates = { of: from, files };
      return {
        save: [{ kind: 'write-file', path, mode: 0o600, owner: OWNER, content: `${JSON.stringify(record)}\n` }],
        replace: found.outdated.map((outdated): Operation => ({ kind: 'remove-file', path: outdated })),
        finish: [],
      };
    },
    /** Whether an interrupted switch has left the kubelet stopped: its copies, also damaged ones, show the switch. */
    isStopped: async (): Promise<boolean> => {
      if (!(await readCopies()).exists) return false;
      const unit = await observe(host, unitState('kubelet'));
      return unit?.activeState === 'inactive' || unit?.activeState === 'failed';
    },
    /**
     * Removes the copies: after a successful trial they are outdated.
     * @param of only the copies of this configuration, which has been restored. Default: all
     */
    forget: async (of?: string | null): Promise<void> => {
      const { exists, saved } = await readCopies();
      if (exists && (of === undefined || saved === null || saved.of === of)) await host.perform([removal]);
    },
  };
}

const OWNER = 'root:root';

function restored({ files }: SavedStates): readonly Operation[] {
  return Object.entries(files).map(
    ([path, content]): Operation =>
      content === null ? { kind: 'remove-file', path } : { kind: 'write-file', path, mode: 0o600, owner: OWNER, content },
  );
}

/**
 * The paths of the files with which the next kubelet would exit, and the files to copy. Null: no state file depends on the
 * switch, or the configurations cannot be read.
 */
async function statesToReplace(
  from: string | null,
  to: string | null,
  { host, store, catalogue, localConfig }: ManagerStateOptions,
): Promise<{ readonly outdated: readonly string[]; readonly files: SavedStates['files'] } | null> {
  try {
    const kubelet = await observeKubelet(host, catalogue);
    const { minor, flags } = kubelet;
    const dropIns = kubelet.setup.dropIns;
    const effective = async (hash: string | null): Promise<JsonObject | null> => {
      const text =
        hash === null
          ? (await observe(host, fileFacts([localConfig]))).get(localConfig)?.content
          : (await store.readCheckpoint(hash))?.[PAYLOAD_FILE];
      if (text === undefined) return null;
      const configFile = { path: localConfig, text };
      return layerRunningConfig({ catalogue, minor, flags, dropIns, dynamicConfig: null, configFile }).layered.config;
    };
    const [before, after] = [await effective(from), await effective(to)];
    if (after === null) return null;
    const rootDir = rootDirOf(flags);
    const existing = await observe(host, managerStateTexts(rootDir));
    const outdated = outdatedManagerStates({ before, after }, rootDir, existing);
    const created = Object.entries(MANAGER_STATES).flatMap(([field, file]): [string, null][] => {
      const isOther = before === null || textAt(before, field) !== textAt(after, field);
      return isOther && !existing.has(`${rootDir}/${file}`) ? [[`${rootDir}/${file}`, null]] : [];
    });
    if (outdated.length === 0 && created.length === 0) return null;
    const files = Object.fromEntries([...outdated.map(({ path, content }): [string, string | null] => [path, content]), ...created]);
    return { outdated: outdated.map(({ path }) => path), files };
  } catch (error) {
    // Must not block a rollback. A trial with an outdated state file fails.
    if (!isAppError(error)) throw error;
    return null;
  }
}
