import type { JsonObject } from '../../base/json.ts';
import { cleanPath } from '../../base/text/clean-path.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { CommandFact, FileFact } from '../../host/facts/query.ts';
import { textAt } from '../documents/values.ts';
import { podLogsDirIssue, volumePluginDirIssue } from '../validate/directory-rules.ts';

/**
 * Checks the directories that a change names: the kubelet deletes the content of `podLogsDir`, and runs the programs in
 * `volumePluginDir` as root. Only changed fields cost a query.
 * @param change effective configurations with absolute paths; `hidden`: beginnings of paths that the host does not show to
 *   this process
 * @returns the reasons to refuse the change as clauses, also for a directory that cannot be read
 * @throws the errors of `host.query`
 */
export async function checkDirectories(
  host: Host,
  { before, after, hidden }: { readonly before: JsonObject; readonly after: JsonObject; readonly hidden: readonly string[] },
  signal?: AbortSignal,
): Promise<readonly { readonly path: 'podLogsDir' | 'volumePluginDir'; readonly why: string }[]> {
  const found = [];
  for (const path of ['podLogsDir', 'volumePluginDir'] as const) {
    const directory = textAt(after, path);
    if (!directory.startsWith('/') || cleanPath(directory) === cleanPath(textAt(before, path))) continue;
    const why = hidden.some((start) => `${cleanPath(directory)}/`.startsWith(start))
      ? `${directory} cannot be checked, because the agent has no access to it`
      : await (path === 'podLogsDir' ? podLogsIssue : pluginsIssue)(host, cleanPath(directory), signal);
    if (why !== null) found.push({ path, why });
  }
  return found;
}

/** `NAMESPACE_NAME_UID`; static pods have a hash of 32 digits as their UID. */
const POD_LOGS = /^[a-z0-9-]+_[a-z0-9.-]+_(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;

const NAMED = 3;

async function podLogsIssue(host: Host, directory: string, signal?: AbortSignal): Promise<string | null> {
  const system = podLogsDirIssue(directory);
  if (system !== null) return system;
  const fact = defineFact(
    { file: { kind: 'file', path: directory, content: false }, names: { kind: 'list', path: directory } },
    (answers) => answers,
  );
  const { file, names } = await observe(host, fact, signal);
  if (file === null) return null;
  const issue = file.target === undefined ? null : podLogsDirIssue(file.target);
  if (issue !== null) return `${directory} is a link to ${file.target}: ${issue}`;
  if (file.type !== 'directory') return `${directory} is not a directory`;
  const others = (names ?? []).filter((name) => !POD_LOGS.test(name));
  if (others.length === 0) return null;
  const more = others.length > NAMED ? ` and ${others.length - NAMED} more entries` : '';
  return `${directory} contains ${others.slice(0, NAMED).join(', ')}${more}, which are not logs of pods: the kubelet would delete them`;
}

async function pluginsIssue(host: Host, directory: string, signal?: AbortSignal): Promise<string | null> {
  const writable = volumePluginDirIssue(directory);
  if (writable !== null) return writable;
  const found = await ownersOf(host, directory, signal);
  const real = found.find(({ path }) => path === directory)?.file?.target;
  const issue = real === undefined ? null : volumePluginDirIssue(real);
  if (issue !== null) return `${directory} is a link to ${real}: ${issue}`;
  const all = [...found, ...(real === undefined ? [] : await ownersOf(host, cleanPath(real), signal))];
  const open = all.find(({ file }) => file !== null && !isOfRoot(file));
  if (open?.file !== undefined && open.file !== null)
    return `${open.path} (${open.file.owner}, mode ${open.file.mode.toString(8)}) can be written by others than root, and the kubelet would run the programs in ${directory} as root`;
  if (found.every(({ path, file }) => path !== directory || file === null)) return null;
  return contentIssue(host, directory, signal);
}

/** A directory and those above it. */
async function ownersOf(host: Host, directory: string, signal?: AbortSignal): Promise<readonly { path: string; file: FileFact | null }[]> {
  const steps = directory.split('/').filter((step) => step !== '');
  const paths = ['/', ...steps.map((_, i) => `/${steps.slice(0, i + 1).join('/')}`)];
  const files = await observe(host, fileFacts(paths, { content: false }), signal);
  return [...files].map(([path, file]) => ({ path, file }));
}

/** Also false for a directory in which every user can create entries, as /tmp. */
function isOfRoot({ owner, mode }: FileFact): boolean {
  return /^(?:root|0):/.test(owner) && (mode & 0o022) === 0;
}

/** Programs of a volume plugin have the path `VENDOR~DRIVER/DRIVER`. */
async function contentIssue(host: Host, directory: string, signal?: AbortSignal): Promise<string | null> {
  const tests = ['!', '-user', '0', '-o', '-perm', '-020', '-o', '-perm', '-002'];
  const argv = ['find', '-L', directory, '-maxdepth', '2', '(', ...tests, ')', '-print'];
  const fact = defineFact({ entries: { kind: 'command', argv } }, ({ entries }) => entries as CommandFact);
  const { exitCode, stdout } = await observe(host, fact, signal);
  if (exitCode !== 0) return `the owners of the programs in ${directory} cannot be read`;
  const [first = ''] = stdout.split('\n');
  return first === '' ? null : `${first} can be written by others than root, and the kubelet would run it as root`;
}
