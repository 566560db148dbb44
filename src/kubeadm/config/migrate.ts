import { documentTexts } from '../../codec/document-text.ts';
import { entryOf, parseSource } from '../../codec/source.ts';
import { CONFIG_KINDS } from './document-header.ts';
import { type ConfigDocument, encodeAsWritten, renderConfig, secretsOf } from './encode.ts';
import { checkValues, type LoadedConfig, loadConfig } from './load.ts';
import { MODEL_MEMBERS, type ModelKind, type Timeouts } from './model.ts';

/**
 * Converts a configuration file from v1beta3 to v1beta4. Only the differences between the versions are
 * changed: no defaults, no generated token; documents that need no conversion (v1beta4, KubeletConfiguration,
 * KubeProxyConfiguration) are kept with their comments. kubeadm instead fills in defaults of the host,
 * generates a token and drops the component documents.
 * @param file name of the file in positions
 * @param asKubeadm `metadata` of a document is an error
 * @returns `output`: the file in v1beta4, with invalid values as they are; null when the structure of a document is invalid
 */
export function migrateConfig(text: string, file: string, { asKubeadm }: { readonly asKubeadm: boolean }) {
  const ignores = asKubeadm ? {} : { ignores: 'metadata' as const };
  const loaded = loadConfig(text, file, { kinds: CONFIG_KINDS, allowDeprecated: true, check: 'structure', ...ignores });
  const { problems } = checkValues(loaded);
  if (loaded.problems.some(({ severity }) => severity !== 'warning')) return { output: null, problems };
  const documents = migratedDocuments(text, file, withTimeoutInJoin(loaded));
  return { output: renderConfig(documents, secretsOf(Object.values(MODEL_MEMBERS).map((member) => loaded[member]))), problems };
}

function migratedDocuments(text: string, file: string, loaded: LoadedConfig): readonly (ConfigDocument | string)[] {
  const texts = documentTexts(text);
  const documents = parseSource(text, file).documents.filter(({ root }) => root !== null);
  const written = documents.map(({ root, index }) => {
    const value = entryOf(root, 'kind')?.value;
    return { kind: (value?.kind === 'scalar' ? value.text : '') as ModelKind, text: texts[index] ?? '' };
  });
  const migrated = written.map(({ kind, text: asItIs }) =>
    needsWriting(kind, loaded) ? encodeAsWritten(kind, loaded[MODEL_MEMBERS[kind]] ?? {}) : asItIs,
  );
  // A timeout moved from ClusterConfiguration may need a new InitConfiguration.
  const addsInit = loaded.init !== undefined && !written.some(({ kind }) => kind === 'InitConfiguration');
  return addsInit ? [encodeAsWritten('InitConfiguration', loaded.init), ...migrated] : migrated;
}

/** True for documents of v1beta3, and for documents that got a member from one. */
function needsWriting(kind: ModelKind, { versions, origins }: LoadedConfig): boolean {
  if (versions.get(kind) !== 'v1beta4') return versions.get(kind) === 'v1beta3';
  const timeout = origins.get(`${kind}.timeouts.controlPlaneComponentHealthCheck`);
  return timeout !== undefined && 'path' in timeout && timeout.path === 'apiServer.timeoutForControlPlane';
}

/** The timeout in a v1beta3 ClusterConfiguration also applies to `join`; the loader sets it only for `init`. */
function withTimeoutInJoin(loaded: LoadedConfig): LoadedConfig {
  const origin = loaded.origins.get('InitConfiguration.timeouts.controlPlaneComponentHealthCheck');
  const moved = loaded.init?.timeouts?.controlPlaneComponentHealthCheck;
  const own: Timeouts = loaded.join?.timeouts ?? {};
  const isMoved = origin !== undefined && origin === loaded.origins.get('ClusterConfiguration.apiServer.timeoutForControlPlane');
  if (!isMoved || moved === undefined || !loaded.join || own.controlPlaneComponentHealthCheck !== undefined) return loaded;
  const origins = new Map(loaded.origins).set('JoinConfiguration.timeouts.controlPlaneComponentHealthCheck', origin);
  return { ...loaded, origins, join: { ...loaded.join, timeouts: { ...own, controlPlaneComponentHealthCheck: moved } } };
}
