import { isJsonObject } from '../../base/json.ts';
import { parseSource, sourceToJson } from '../../codec/source.ts';
import type { Host } from '../../host/access/host.ts';
import { observe } from '../../host/access/observe.ts';
import { combineFacts, defineFact, type Fact } from '../../host/facts/fact.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import type { FactQuery, FileFact } from '../../host/facts/query.ts';

/** The flags of the programs that give the kubelet credentials for registries, in the order in which it reads them. */
export const CREDENTIAL_PROVIDER_FLAGS = ['image-credential-provider-bin-dir', 'image-credential-provider-config'] as const;

/** A path of a flag with which the kubelet exits ("Failed to register CRI auth plugins"). */
interface MissingPath {
  readonly flag: (typeof CREDENTIAL_PROVIDER_FLAGS)[number];
  /** A clause. */
  readonly why: string;
}

/**
 * Looks for the files of a credential provider as the kubelet does at its start: the directory, the configuration (a
 * file, or the files of a directory), and the program of each provider.
 * @param flags the values of both flags; the kubelet needs the second as soon as one is set
 * @returns null: all exist
 * @throws the errors of `host.query`
 * @see kubernetes/kubernetes pkg/credentialprovider/plugin/plugin.go RegisterCredentialProviderPlugins, config.go
 *   readCredentialProviderConfig (1.36)
 */
export async function missingCredentialProvider(
  host: Host,
  { binDir, config }: { readonly binDir: string; readonly config: string },
  signal?: AbortSignal,
): Promise<MissingPath | null> {
  const [ofBin, ofConfig] = CREDENTIAL_PROVIDER_FLAGS;
  if (binDir === '' && config === '') return null;
  if (binDir === '' || config === '') {
    const flag = binDir === '' ? ofBin : ofConfig;
    return { flag, why: `--${flag} is not set, but --${flag === ofBin ? ofConfig : ofBin} is` };
  }
  const found = await observe(host, combineFacts({ dir: states([binDir]), files: fileFacts([config]), names: namesIn(config) }), signal);
  if ((found.dir.get(binDir) ?? null) === null) return { flag: ofBin, why: `the directory ${binDir} does not exist on the host` };
  const file = found.files.get(config) ?? null;
  if (file === null) return { flag: ofConfig, why: `${config} does not exist on the host` };
  const inDirectory = file.type === 'directory' ? found.names.map((name) => `${config}/${name}`) : [];
  if (file.type === 'directory' && inDirectory.length === 0)
    return { flag: ofConfig, why: `the directory ${config} contains no file .json, .yaml or .yml` };
  const texts = file.type === 'directory' ? [...(await observe(host, fileFacts(inDirectory), signal)).values()] : [file];
  const programs = texts.flatMap((one) => providersIn(one?.content ?? '')).map((name) => `${binDir}/${name}`);
  if (programs.length === 0) return { flag: ofConfig, why: `${config} names no provider` };
  const present = await observe(host, states(programs), signal);
  const missing = programs.find((path) => !isExecutable(present.get(path) ?? null));
  if (missing === undefined) return null;
  const isThere = (present.get(missing) ?? null) !== null;
  return {
    flag: ofBin,
    why: `the program ${missing}, which ${config} names, ${isThere ? 'is not executable' : 'does not exist on the host'}`,
  };
}

/** Files without their content: programs are large. */
function states(paths: readonly string[]): Fact<ReadonlyMap<string, FileFact | null>> {
  const queries = Object.fromEntries(paths.map((path): [string, FactQuery] => [path, { kind: 'file', path, content: false }]));
  return defineFact(queries, (answers) => new Map(paths.map((path) => [path, answers[path] as FileFact | null])));
}

function namesIn(directory: string) {
  return defineFact({ names: { kind: 'list', path: directory } }, ({ names }) =>
    (names ?? []).filter((name) => /\.(?:json|ya?ml)$/.test(name)).toSorted(),
  );
}

/** The names of the providers of a CredentialProviderConfig. */
function providersIn(text: string): readonly string[] {
  const root = parseSource(text, 'config').documents[0]?.root ?? null;
  const value = root === null ? null : sourceToJson(root);
  const providers = isJsonObject(value) && Array.isArray(value.providers) ? value.providers : [];
  return providers.flatMap((one) => (isJsonObject(one) && typeof one.name === 'string' ? [one.name] : []));
}

function isExecutable(file: { readonly type: string; readonly mode: number } | null): boolean {
  return file?.type === 'file' && (file.mode & 0o111) !== 0;
}
