import type { JsonObject } from '../../base/json.ts';
import type { FileFact } from '../../host/facts/query.ts';
import type { UnitState } from '../../host/facts/unit.ts';
import type { Warning } from '../../host/plan/change.ts';
import type { DesiredFile } from '../../host/plan/diff-file.ts';
import { parseEnvironmentFile, splitCommandWords } from '../../host/systemd/environment.ts';
import { EXTRA_ARGS_FILES, KUBELET_DROP_IN, KUBELET_UNIT, UNIT_DIRECTORIES } from '../../host/systemd/kubelet-unit-paths.ts';
import { parseUnitFile, sameUnitFile, unitValues } from '../../host/systemd/unit-file.ts';
import { FLAGS_ENV } from '../../kube/well-known.ts';

/** The parts of a unit file that decide whether it is used. */
export type UnitFact = Pick<FileFact, 'type' | 'content' | 'target'>;

/** Drops the parts of a file that differ between hosts although the files are equal, such as its time. */
export function unitFactOf({ type, content, target }: FileFact): UnitFact {
  return { type, ...(content === undefined ? {} : { content }), ...(target === undefined ? {} : { target }) };
}

export interface UnitFilesInput {
  readonly found: ReadonlyMap<string, UnitFact | null>;
  readonly unit: Pick<UnitState, 'unitFileState'> | null;
  readonly packageFamily: 'deb' | 'rpm' | null;
  /** Renders the drop-in with this second EnvironmentFile. */
  readonly renderDropIn: (extraArgsFile: string) => string;
  readonly renderUnit: () => string;
}

export interface UnitFilesDesign {
  readonly files: readonly DesiredFile[];
  readonly warnings: readonly Warning[];
  /** Why systemd cannot start a kubelet with these files; null when it can. */
  readonly refusal: string | null;
  /** The file that sets `KUBELET_EXTRA_ARGS`. */
  readonly extraArgsFile: string;
  /** The words of `KUBELET_EXTRA_ARGS`: last on the command line, so they win. */
  readonly extraArgs: readonly string[];
}

/**
 * Decides which unit files to write. Package files are respected: an equal drop-in is unchanged wherever it
 * is, a different but working one is kept with a warning, and one that does not start the kubelet like
 * kubeadm is overridden in /etc.
 */
export function designUnitFiles(input: UnitFilesInput): UnitFilesDesign {
  const candidates = UNIT_DIRECTORIES.map((directory) => `${directory}/${KUBELET_DROP_IN}`).filter((path) => exists(input.found.get(path)));
  const effectivePath = candidates[0] ?? null;
  const effective = effectivePath === null ? null : (input.found.get(effectivePath) ?? null);
  const extraArgsFile = extraArgsFileOf(effective?.content ?? '') ?? EXTRA_ARGS_FILES[input.packageFamily ?? 'deb'];
  const dropIn = designDropIn(effectivePath, effective, candidates, input, extraArgsFile);
  const unitPath = UNIT_DIRECTORIES.map((directory) => `${directory}/${KUBELET_UNIT}`).find((path) => exists(input.found.get(path)));
  const files =
    unitPath === undefined ? [rootFile(`${UNIT_DIRECTORIES[0]}/${KUBELET_UNIT}`, input.renderUnit()), ...dropIn.files] : dropIn.files;
  const masked = unitPath !== undefined && isMasked(input.found.get(unitPath) ?? null);
  return {
    files,
    warnings: dropIn.warnings,
    refusal: masked || input.unit?.unitFileState === 'masked' ? 'kubelet.service is masked' : dropIn.refusal,
    extraArgsFile,
    extraArgs: splitCommandWords(parseEnvironmentFile(input.found.get(extraArgsFile)?.content ?? '').get('KUBELET_EXTRA_ARGS') ?? ''),
  };
}

function designDropIn(
  path: string | null,
  effective: UnitFact | null,
  candidates: readonly string[],
  input: UnitFilesInput,
  extraArgsFile: string,
): Pick<UnitFilesDesign, 'files' | 'warnings' | 'refusal'> {
  const ours = input.renderDropIn(extraArgsFile);
  const etc = `${UNIT_DIRECTORIES[0]}/${KUBELET_DROP_IN}`;
  if (path === null || effective === null) return { files: [rootFile(etc, ours)], warnings: [], refusal: null };
  if (isMasked(effective)) return { files: [], warnings: [], refusal: `${path} is masked (empty or linked to /dev/null)` };
  const content = effective.content ?? '';
  const warnings = hiddenDropIns(path, content, candidates, input);
  if (sameUnitFile(content, ours) || differsInBinaryOnly(content, ours)) return { files: [], warnings, refusal: null };
  const missing = missingParts(content);
  if (missing.length === 0) {
    const message = `${path} differs from the kubeadm drop-in but starts the kubelet in the same way; the file is kept`;
    return { files: [], warnings: [...warnings, { code: 'DROPIN_DIFFERS', message }], refusal: null };
  }
  const message = `${path} lacks parts of the kubeadm drop-in (${missing.join(', ')}): ${path === etc ? 'the file is rewritten' : `${etc} is written and overrides the file`}`;
  return { files: [rootFile(etc, ours)], warnings: [...warnings, { code: 'DROPIN_REPLACED', message }], refusal: null };
}

function hiddenDropIns(path: string, content: string, candidates: readonly string[], input: UnitFilesInput): readonly Warning[] {
  return candidates
    .filter((other) => other !== path && !sameUnitFile(input.found.get(other)?.content ?? '', content))
    .map((other) => ({ code: 'DROPIN_MASKED', message: `${path} overrides ${other}, which differs and is ignored by systemd` }));
}

/** The parts of the drop-in that kubeadm and kubeletadm need to configure the kubelet. */
function missingParts(content: string): readonly string[] {
  const directives = parseUnitFile(content);
  const environment = unitValues(directives, 'Service', 'Environment').join(' ');
  const files = unitValues(directives, 'Service', 'EnvironmentFile').map((file) => file.replace(/^-/, ''));
  const command = `${unitValues(directives, 'Service', 'ExecStart').at(-1) ?? ''} ${environment}`;
  const needed: readonly [string, boolean][] = [
    ['--config=/var/lib/kubelet/config.yaml', /--config[= ]\/var\/lib\/kubelet\/config\.yaml/.test(command)],
    ['--kubeconfig=/etc/kubernetes/kubelet.conf', /--kubeconfig[= ]\/etc\/kubernetes\/kubelet\.conf/.test(command)],
    ['--bootstrap-kubeconfig', /--bootstrap-kubeconfig[= ]/.test(command)],
    [`EnvironmentFile=-${FLAGS_ENV}`, files.includes(FLAGS_ENV)],
    ['$KUBELET_KUBEADM_ARGS in ExecStart', /\$\{?KUBELET_KUBEADM_ARGS\b/.test(command)],
  ];
  return needed.filter(([, existing]) => !existing).map(([part]) => part);
}

function differsInBinaryOnly(a: string, b: string): boolean {
  const plain = (text: string): string => text.replace(/^(ExecStart=)\S+/gm, '$1kubelet');
  return sameUnitFile(plain(a), plain(b)) && /^ExecStart=\S+\/kubelet\s/m.test(a);
}

function extraArgsFileOf(dropIn: string): string | null {
  const files = unitValues(parseUnitFile(dropIn), 'Service', 'EnvironmentFile').map((file) => file.replace(/^-/, ''));
  return files.findLast((file) => file !== FLAGS_ENV) ?? null;
}

function exists(fact: UnitFact | null | undefined): boolean {
  return fact !== null && fact !== undefined;
}

function isMasked(fact: UnitFact | null): boolean {
  return fact !== null && (fact.target === '/dev/null' || (fact.type === 'file' && fact.content === ''));
}

/** A file with a KubeletConfiguration. All users may read it, as with kubeadm, unless it contains credentials for the URL of static pods. */
export function kubeletConfigFile(path: string, { config, text }: { readonly config: JsonObject; readonly text: string }): DesiredFile {
  const { staticPodURL, staticPodURLHeader } = config;
  const hasCredentials = Boolean(staticPodURLHeader) || /^[^/]*:\/\/[^/]*@/.test(String(staticPodURL));
  return { ...rootFile(path, text), mode: hasCredentials ? 0o600 : 0o644 };
}

/** A file of root that all users may read. */
export function rootFile(path: string, content: string): DesiredFile {
  return { path, content, mode: 0o644, owner: 'root:root' };
}
