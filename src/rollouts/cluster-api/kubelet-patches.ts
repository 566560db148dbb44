import { basename, join } from 'node:path';
import * as z from 'zod';
import { AppError } from '../../base/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../base/json.ts';
import { KUBELET_PATCH_SCHEMA } from '../../codec/patch-schema.ts';
import { KUBELET_API_VERSION, KUBELET_KIND } from '../../kubelet/documents/decode.ts';
import { applyPlannedPatches, parsePatchFileName, planPatches } from '../../kubelet/layers/patch-files.ts';

const configuration = z.looseObject({ patches: z.looseObject({ directory: z.string().optional() }).optional() }).optional();
/** Anyone who can reach the port can send lists: the validation of a long list must not delay other requests. */
const MOST_ITEMS = 1_000;
const list = <Item extends z.ZodType>(item: Item) => z.array(z.unknown()).max(MOST_ITEMS).pipe(z.array(item)).optional();
const commands = list(z.string());

/**
 * The part of the spec of a KubeadmConfig that decides about kubelet patches; the same in v1beta1 and v1beta2.
 * @see kubernetes-sigs/cluster-api api/bootstrap/kubeadm/v1beta2/kubeadmconfig_types.go
 */
export const kubeadmConfigSpec = z.looseObject({
  initConfiguration: configuration,
  joinConfiguration: configuration,
  files: list(z.looseObject({ path: z.string(), content: z.string().optional() })),
  bootCommands: commands,
  preKubeadmCommands: commands,
  postKubeadmCommands: commands,
});
export type KubeadmConfigSpec = z.output<typeof kubeadmConfigSpec>;

/** The patches of a KubeadmConfig for the kubelet of its node. */
export interface KubeletPatches {
  readonly files: readonly { readonly index: number; readonly path: string; readonly content: string }[];
  /** The fields that all files set together; later files win, in the order of kubeadm. */
  readonly fields: JsonObject;
}

const TARGET = 'kubeletconfiguration';
/** As `MOST_ITEMS`, for files that are parsed. */
const MOST_FILES = 32;

/**
 * Reads the files of a KubeadmConfig that kubeadm applies to the KubeletConfiguration.
 * @returns `unreadable`: why the fields are not known, as a clause. Only files that are understood completely are handled
 * @see kubeadm 1.36 app/util/patches
 */
export function readKubeletPatches(spec: KubeadmConfigSpec): KubeletPatches | { readonly unreadable: string } {
  const named = [spec.initConfiguration, spec.joinConfiguration].flatMap((one) => one?.patches?.directory || []);
  const [directory, other] = [...new Set(named.map((path) => join(path, '/')))];
  if (directory === undefined) return { files: [], fields: {} };
  if (other !== undefined) return { unreadable: `initConfiguration and joinConfiguration have different patch directories` };
  const below = (spec.files ?? []).flatMap((file, index) => {
    const path = join(file.path);
    return path.startsWith(directory) ? [{ ...file, index, path: path.slice(directory.length), full: file.path }] : [];
  });
  const files: KubeletPatches['files'][number][] = [];
  for (const { index, path, full, ...file } of below) {
    const name = parsePatchFileName(basename(path));
    if ('ignored' in name || ('target' in name && name.target !== TARGET)) continue;
    const why = 'problem' in name ? name.problem : (whyNotPlain(file) ?? (name.type === 'json' ? 'it is a JSON patch' : null));
    if (why !== null) return { unreadable: `${full}: ${why}` };
    if (files.length === MOST_FILES) return { unreadable: `more than ${MOST_FILES} patch files` };
    if (files.some((one) => one.path === path)) return { unreadable: `${full}: the file is defined twice` };
    files.push({ index, path, content: file.content ?? '' });
  }
  const commands = [...(spec.bootCommands ?? []), ...(spec.preKubeadmCommands ?? []), ...(spec.postKubeadmCommands ?? [])];
  if (files.length > 0 && commands.some((command) => command.includes(directory.slice(0, -1))))
    return { unreadable: `a command names the patch directory ${directory.slice(0, -1)} and may change its files` };
  return merged(files);
}

/** Members of a file with these values, or with any value, do not change what is written to the file. */
const PLAIN: Readonly<Record<string, readonly Json[] | null>> = {
  content: null,
  owner: null,
  permissions: null,
  append: [false],
  encoding: [''],
  contentFormat: ['', 'Raw'],
};

function whyNotPlain(file: Readonly<Record<string, unknown>>): string | null {
  const member = Object.entries(file).find(([name, value]) => {
    const values = Object.hasOwn(PLAIN, name) ? PLAIN[name] : [];
    return value !== null && value !== undefined && values !== null && !values?.includes(value as Json);
  });
  return member === undefined ? null : `its content is not known because of ${member[0]}`;
}

function merged(files: KubeletPatches['files']): ReturnType<typeof readKubeletPatches> {
  const { patches, problems } = planPatches(files.map(({ path, content }) => ({ path, text: content })));
  const [problem] = problems;
  if (problem !== undefined) return { unreadable: `${problem.position?.file ?? 'a patch file'}: ${problem.message}` };
  const directive = patches.find(({ patch }) => !isJsonObject(patch) || hasDirective(patch));
  if (directive !== undefined) return { unreadable: `${directive.source}: null values and directives are not handled` };
  try {
    const { apiVersion, kind, ...fields } = applyPlannedPatches({}, patches, { target: TARGET, schema: KUBELET_PATCH_SCHEMA });
    const isOther = (apiVersion ?? KUBELET_API_VERSION) !== KUBELET_API_VERSION || (kind ?? KUBELET_KIND) !== KUBELET_KIND;
    return isOther ? { unreadable: `a patch changes apiVersion or kind` } : { files, fields };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { unreadable: error.problems[0]?.message ?? error.code };
  }
}

/** `null` removes a field; `$patch` and similar change how lists and objects are merged. */
function hasDirective(value: Json): boolean {
  if (Array.isArray(value)) return value.some((item: Json) => hasDirective(item));
  if (!isJsonObject(value)) return value === null;
  return Object.entries(value).some(([key, item]) => key.startsWith('$') || hasDirective(item));
}
