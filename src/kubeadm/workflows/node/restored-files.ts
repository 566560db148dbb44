import { isJsonObject, type JsonObject } from '../../../base/json.ts';
import { revealText } from '../../../base/text/secret.ts';
import { parseSource, sourceToJson } from '../../../codec/source.ts';
import type { DesiredFile } from '../../../host/plan/diff-file.ts';
import { UNIT_FILE_PATHS } from '../../../host/systemd/kubelet-unit-paths.ts';
import { FLAGS_ENV, INSTANCE_CONFIG, KUBELET_CONFIG_FILE } from '../../../kube/well-known.ts';
import { isOwnConfigDropIn } from '../../../kubelet/facts/own-config-drop-ins.ts';
import { addLayer, NO_LAYERS } from '../../../kubelet/layers/layers.ts';
import { NODE_SETTINGS_PATH } from '../../node-settings/node-settings.ts';
import type { KubeletStartInput } from '../../phases/kubelet-start.ts';
import type { RestoredFiles } from '../../phases/restore-files.ts';
import type { NodeDesign } from '../../render/node-design.ts';

const UNIT_FILES: ReadonlySet<string> = new Set(UNIT_FILE_PATHS);

/** The files of a kubelet without its units and drop-in files. */
export const KUBELET_FILES: ReadonlySet<string> = new Set([KUBELET_CONFIG_FILE, FLAGS_ENV, INSTANCE_CONFIG, NODE_SETTINGS_PATH]);

/** Whether the kubelet reads the file, or `upgrade node` does for it. */
export function isKubeletFile(path: string): boolean {
  return KUBELET_FILES.has(path) || UNIT_FILES.has(path) || isOwnConfigDropIn(path);
}

/** The files that the kubelet reads. */
export function filesToWrite(restore: RestoredFiles): readonly DesiredFile[] {
  return [...restore].flatMap(([path, file]) => (file === null || path === NODE_SETTINGS_PATH ? [] : [{ path, ...file }]));
}

/** The files of the phase that restores them. */
export function restoredInput(restore: RestoredFiles): Pick<KubeletStartInput, 'files' | 'unitFiles' | 'removed'> {
  const all = filesToWrite(restore);
  return {
    files: all.filter(({ path }) => !UNIT_FILES.has(path)),
    unitFiles: all.filter(({ path }) => UNIT_FILES.has(path)),
    removed: [...restore].flatMap(([path, file]) => (file === null ? [path] : [])),
  };
}

/** The design of a node with its earlier files, so that the checks of a node read these. */
export function restoreDesign(design: NodeDesign, restore: RestoredFiles): NodeDesign {
  const fileAt = (path: string): DesiredFile | null => {
    const file = restore.get(path);
    return file == null ? null : { path, ...file };
  };
  const { files } = design;
  const configYaml = fileAt(KUBELET_CONFIG_FILE) ?? files.configYaml;
  const flagsEnv = fileAt(FLAGS_ENV) ?? files.flagsEnv;
  const dropIns = filesToWrite(restore).filter(({ path }) => isOwnConfigDropIn(path));
  const layered = [configYaml, ...dropIns.toSorted((a, b) => (a.path < b.path ? -1 : 1))].reduce(
    (below, { path, content }) =>
      addLayer(below, { overlay: fieldsOf(revealText(content)), originOf: () => ({ layer: 'node', source: path }) }),
    NO_LAYERS,
  );
  return {
    ...design,
    layered,
    files: { configYaml, flagsEnv, instanceConfig: fileAt(INSTANCE_CONFIG), configDropIns: dropIns.length === 0 ? null : dropIns },
  };
}

/** An invalid file has no fields; the kubelet refuses it in the preflight checks. */
function fieldsOf(text: string): JsonObject {
  const { documents, problems } = parseSource(text, 'file');
  const root = documents[0]?.root ?? null;
  const value = problems.length > 0 || root === null ? null : sourceToJson(root);
  return isJsonObject(value) ? value : {};
}
