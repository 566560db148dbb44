import { revealText } from '../../../base/text/secret.ts';
import type { Host } from '../../../host/access/host.ts';
import { observe } from '../../../host/access/observe.ts';
import { combineFacts } from '../../../host/facts/fact.ts';
import { unitState } from '../../../host/facts/unit.ts';
import type { PhaseContext } from '../../../host/phase.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import type { CommandLineWord } from '../../../host/systemd/exec-start.ts';
import type { PlannedTexts } from '../../../host/systemd/observe-unit-texts.ts';
import { lastFlag } from '../../../host/systemd/try-drop-in.ts';
import { KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import type { SetupChange } from '../../../kubelet/effective/field-changes.ts';
import { observeKubeletWords } from '../../../kubelet/effective/healthz-url.ts';
import { type KubeletSetup, readKubeletSetup, type SetupOptions } from '../../../kubelet/effective/kubelet-setup.ts';
import { observeNextWords, wordsOfProcess } from '../../../kubelet/effective/observe-kubelet.ts';
import type { HostFacts } from '../../../kubelet/facts/host-facts.ts';
import { kubeletCommandLine } from '../../../kubelet/facts/kubelet-process.ts';
import { CONFIG_DROP_IN_NAMES, ownConfigDropInPaths } from '../../../kubelet/facts/own-config-drop-ins.ts';
import { POINTER_DROP_IN } from '../../../kubelet/node-agent/agent-units.ts';
import { hashInPath } from '../../../kubelet/node-agent/layout.ts';

interface PlannedNode extends Pick<SetupOptions, 'catalogue' | 'minor'> {
  readonly facts: Pick<HostFacts, 'unit' | 'os'>;
  /** Files of the kubelet that the run writes: configuration, flags, unit. */
  readonly files: readonly DesiredFile[];
  /** The command line of the design, for a host whose unit cannot be read. */
  readonly usual: readonly string[];
}

const FACTS = combineFacts({ commandLine: kubeletCommandLine, names: CONFIG_DROP_IN_NAMES });

/**
 * Reads the setup of a host's kubelet now (of its running process, else of its next start), and the one after a change.
 * Both exclude the configuration of a ConfigMap, which `checkConfigSource` compares.
 */
export async function observeSetups(context: PhaseContext, { facts, files, usual, catalogue, minor }: PlannedNode): Promise<SetupChange> {
  const { host, signal } = context;
  const { commandLine, names } = await observe(host, FACTS, signal);
  const written = new Map(files.map(({ path, content }) => [path, revealText(content)]));
  const outdated = ownConfigDropInPaths(names).filter((path) => !written.has(path));
  const planned: PlannedTexts = new Map([...LOCAL, ...outdated.map((path) => [path, null] as const), ...written]);
  const nextWords = (texts: PlannedTexts): Promise<readonly CommandLineWord[] | null> =>
    observeNextWords(host, { unit: facts.unit, hostname: facts.os.hostname, planned: texts, signal });
  const [disk, desired] = [await nextWords(LOCAL), await nextWords(planned)];
  const running =
    commandLine === null ? disk : withLocalConfig(wordsOfProcess(commandLine.argv, disk, { catalogue, minor }), configOf(disk));
  const before = running === null ? null : await read(running, new Map());
  const after = await read(desired ?? usual.map((word) => ({ word, source: '' })), planned);
  // A kubelet without its configuration file has never been configured, or does not start.
  return { before: before === null || before.missing.length > 0 || before.configFile === null ? null : before, after };

  async function read(words: readonly CommandLineWord[], texts: PlannedTexts): Promise<KubeletSetup> {
    return { ...(await readKubeletSetup(host, words, { catalogue, minor, planned: texts, signal })), dynamicConfig: null };
  }
}

/** The host without the pointer of the agent. */
const LOCAL: PlannedTexts = new Map([[POINTER_DROP_IN, null]]);

/** The command line of the kubelet's process, else of its next start, with its file of `--config` without an assigned ConfigMap. */
export async function observeLocalWords(host: Host, signal?: AbortSignal): Promise<readonly CommandLineWord[]> {
  const words = await observeKubeletWords(host, signal);
  if (words.every(({ word }) => hashInPath(word) === null)) return words;
  const unit = await observe(host, unitState('kubelet'), signal);
  return withLocalConfig(words, configOf(await observeNextWords(host, { unit, hostname: null, planned: LOCAL, signal })));
}

/** The file that the kubelet reads without an assigned ConfigMap. */
function configOf(words: readonly CommandLineWord[] | null): string {
  return lastFlag(words ?? [], 'config')?.value ?? KUBELET_CONFIG_FILE;
}

/** A command line with a checkpoint of the agent as that of the local configuration. */
function withLocalConfig(words: readonly CommandLineWord[], local: string): readonly CommandLineWord[] {
  return words.map((word) =>
    hashInPath(word.word) === null ? word : { ...word, word: word.word.startsWith('-') ? `--config=${local}` : local },
  );
}
