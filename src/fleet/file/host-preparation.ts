import type { Problem } from '../../base/errors.ts';
import { trimTrailing } from '../../base/text/trim-trailing.ts';
import { quoteValue } from '../../codec/document-problems.ts';
import type { PathSegment } from '../../codec/field-path.ts';
import { MODULE_NAME, SYSCTL_NAME } from '../../host/install/kernel.ts';
import { minorOf, PACKAGE_VERSION } from '../../host/install/plan-packages.ts';
import {
  type BinaryInstall,
  type HostPreparation,
  type InstalledFile,
  KUBERNETES_KEY_FINGERPRINT,
  kubernetesRepositoryUrl,
  type PackageInstall,
  type PackageRepository,
  type ProxySetting,
  type SecretSource,
} from '../../host/operation/install-model.ts';
import { inlineSecret, invalidFleetValue } from './fleet-problems.ts';
import type { MergedHost } from './merge-layers.ts';
import type { SettingLocation } from './problem-collector.ts';
import type { FleetLayer } from './schema.ts';
import { isTemplate } from './scope.ts';

/** Resolves the preparation of a host; undefined: nothing declared. */
export function hostPreparation(host: MergedHost): HostPreparation | undefined {
  const proxy = hostProxy(host);
  const files = hostFiles(host);
  const preparation: HostPreparation = {
    swap: host.setting('swap') === 'off' ? 'off' : null,
    kernelModules: kernelModules(host),
    sysctls: sysctls(host),
    install: install(host),
    ...(proxy === undefined ? {} : { proxy }),
    ...(files === undefined ? {} : { files }),
  };
  return Object.values(preparation).every((value) => value === null) ? undefined : preparation;
}

function kernelModules({ setting, place, report }: MergedHost): readonly string[] | null {
  const names = setting('kernelModules') ?? null;
  for (const [i, name] of (names ?? []).entries())
    if (!MODULE_NAME.test(name))
      report(invalidFleetValue(`${JSON.stringify(name)} is not a valid kernel module name`), place('kernelModules', i));
  return names;
}

function sysctls({ entry, setting, findings, place, report }: MergedHost): Readonly<Record<string, string>> | null {
  const values = setting('sysctls') ?? null;
  for (const [name, value] of Object.entries(values ?? {})) {
    const at = place('sysctls', name);
    if (!SYSCTL_NAME.test(name)) {
      const message = `${JSON.stringify(name)} is not a valid kernel parameter name`;
      report(invalidFleetValue(message, 'Use the form of sysctl -a: net.ipv4.ip_forward'), at);
    }
    if (/[\n\0]/.test(value))
      findings.addShared(`sysctl ${name}`, at, (others) => {
        const hosts = `host ${entry.name}${others === 0 ? '' : ` and ${others} more`}`;
        const message = `the value of ${name} for ${hosts} contains a line break or a NUL character: ${quoteValue(value)}`;
        return invalidFleetValue(message, 'Write the value on one line, and also the values of its variables');
      });
  }
  return values;
}

/** Files that kubeletadm writes itself: two contents of one file would replace each other in every run. */
const OWN_FILE =
  /^\/var\/lib\/kubelet\/|^\/etc\/kubernetes\/(?:(?:pki|manifests|kubelet\.conf\.d)\/|[^/]+\.conf$)|\/kubelet\.service(?:\.d\/|$)|kubeletadm/;

function hostFiles({ setting, place, report }: MergedHost): HostPreparation['files'] | undefined {
  const files = setting('files');
  for (const [path, { content }] of Object.entries(files ?? {})) {
    const at = place('files', path);
    if (!/^\/[^\0\n]*[^\0\n/]$/.test(path) || path.split('/').some((part, i) => i > 0 && /^\.{0,2}$/.test(part)))
      report(invalidFleetValue(`${JSON.stringify(path)} is not the absolute path of a file`, 'Use a path that begins with /'), at);
    else if (OWN_FILE.test(path))
      report(invalidFleetValue(`kubeletadm itself writes ${path}`, 'Use the setting that decides the content of this file'), at);
    if (content.includes('\0')) report(invalidFleetValue(`the content of ${path} contains a NUL character`), at);
  }
  return files && Object.fromEntries(Object.entries(files).map(([path, { content, mode = 0o644 }]) => [path, { content, mode }]));
}

type WrittenFile = NonNullable<NonNullable<FleetLayer['binaries']>['files']>[number];

function install(host: MergedHost): PackageInstall | BinaryInstall | null {
  const method = host.setting('install');
  if (method === undefined || method === 'none') return null;
  const reader = new InstallReader(host, method);
  return method === 'packages' ? reader.packages() : reader.binaries();
}

class InstallReader {
  readonly #host: MergedHost;
  readonly #method: 'packages' | 'binaries';

  constructor(host: MergedHost, method: 'packages' | 'binaries') {
    this.#host = host;
    this.#method = method;
  }

  packages(): PackageInstall | null {
    const packages = this.#host.setting('packages') ?? {};
    const version = this.#packageVersion(packages.version);
    const { runtime = 'containerd', extra = [], key = null, keyFingerprints = [KUBERNETES_KEY_FINGERPRINT] } = packages;
    if (packages.runtime !== undefined) this.#packageName(runtime, 'runtime');
    for (const [i, name] of extra.entries()) this.#packageName(name, 'extra', i);
    if (version === null) return null;
    const url =
      packages.repository === undefined ? kubernetesRepositoryUrl(minorOf(version)) : this.#url(packages.repository, 'repository');
    const kubernetes: PackageRepository = {
      name: 'kubernetes',
      url,
      suite: '/',
      components: [],
      key: key === null ? null : this.#key(key, 'key'),
      keyFingerprints,
    };
    if (key === null && url.startsWith('http:')) this.#needsKey('repository');
    return {
      kind: 'packages',
      version,
      runtime: runtime === 'none' ? null : runtime,
      extra,
      repositories: [kubernetes, ...(packages.repositories ?? []).map((repository, i) => this.#repository(repository, i))],
    };
  }

  #packageVersion(declared: string | undefined): string | null {
    const version = declared ?? this.#host.kubernetesVersion;
    const at = declared === undefined ? this.#host.place('install') : this.#place('version');
    if (version === null) {
      this.#wrongAt(at, 'install: packages needs the version of the kubelet', 'Set kubernetesVersion: "1.36" at the top of the file');
      return null;
    }
    const plain = version.replace(/^v/, '');
    if (PACKAGE_VERSION.test(plain)) return plain;
    this.#wrongAt(at, `${JSON.stringify(version)} is not a valid kubelet package version`, 'Use a version such as "1.36" or "1.36.2"');
    return null;
  }

  #packageName(name: string, ...steps: readonly PathSegment[]): void {
    if (!/^[a-z0-9][a-z0-9+._-]*$/i.test(name)) this.#wrong(steps, `${JSON.stringify(name)} is not a valid package name`);
  }

  #repository(written: NonNullable<NonNullable<FleetLayer['packages']>['repositories']>[number], i: number): PackageRepository {
    const { name, suite = '/', components = [], key = null, keyFingerprints = [] } = written;
    const path = ['repositories', i];
    if (!/^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name) || name === 'kubernetes') {
      const message = `${JSON.stringify(name)} is not a valid repository name`;
      this.#wrong([...path, 'name'], message, 'Use letters, digits and dashes; kubernetes is reserved');
    }
    const url = this.#url(written.url, ...path, 'url');
    this.#word(suite, ...path, 'suite');
    for (const [n, component] of components.entries()) this.#word(component, ...path, 'components', n);
    if (keyFingerprints.length === 0)
      this.#wrong(
        [...path, 'keyFingerprints'],
        'a repository needs keyFingerprints',
        'Set keyFingerprints to the fingerprints that the vendor of the repository publishes',
      );
    if (key === null && url.startsWith('http:')) this.#needsKey(...path, 'url');
    return { name, url, suite, components, key: key === null ? null : this.#key(key, ...path, 'key'), keyFingerprints };
  }

  #word(text: string, ...steps: readonly PathSegment[]): void {
    if (/[\s\p{Cc}[\]#]|^$/u.test(text))
      this.#wrong(steps, `${JSON.stringify(text)} is not valid in an apt source line`, 'Use a value without spaces, brackets and #');
  }

  #needsKey(...steps: readonly PathSegment[]): void {
    const hint = 'Use an https URL, or save the key to a file and set key to the path of the file';
    this.#wrong(steps, 'the key of a repository cannot be downloaded over http', hint);
  }

  #url(text: string, ...steps: readonly PathSegment[]): string {
    const url = URL.canParse(text) ? new URL(text) : null;
    if (url === null || !/^https?:$/.test(url.protocol) || /[\s\p{Cc}[\]#?]/u.test(text))
      this.#wrong(steps, `${JSON.stringify(text)} is not a valid repository URL`, 'Use the form https://HOST/PATH');
    else if (url.username !== '' || url.password !== '')
      this.#wrong(steps, 'a URL with a password is not allowed in a fleet file', 'Use a mirror that needs no authentication');
    return text.endsWith('/') ? text : `${text}/`;
  }

  /** A path or an https URL. */
  #key(key: string, ...steps: readonly PathSegment[]): string {
    if (key.startsWith('http://')) this.#needsKey(...steps);
    return key;
  }

  binaries(): BinaryInstall | null {
    const { source, files = [], units = [] } = this.#host.setting('binaries') ?? {};
    if (files.length === 0) {
      const hint = 'List the files in binaries.files, each with name and sha256';
      this.#wrongAt(this.#host.place('install'), 'install: binaries needs a list of files', hint);
      return null;
    }
    for (const [i, unit] of units.entries())
      if (!/^[A-Za-z0-9:_.@-]+$/.test(unit) || unit.startsWith('-'))
        this.#wrong(['units', i], `${JSON.stringify(unit)} is not a valid unit name`);
    const paths = new Set<string>();
    return {
      kind: 'binaries',
      files: files.map((file, i) => this.#file({ ...(source !== undefined && { source }), ...file }, paths, ['files', i])),
      units,
    };
  }

  #file(written: WrittenFile, paths: Set<string>, path: readonly PathSegment[]): InstalledFile {
    const { name, source = '', sha256 = '', mode = 0o755, extractTo } = written;
    const wrong = (member: string, message: string, hint?: string): void => this.#wrong([...path, member], message, hint);
    if (!/^[A-Za-z0-9][\w.+@-]*$/.test(name)) wrong('name', `${JSON.stringify(name)} is not a valid file name`);
    if (sha256 !== '' && !/^[0-9a-fA-F]{64}$/.test(sha256))
      wrong('sha256', 'not a valid SHA-256', 'Quote the 64 hexadecimal digits printed by sha256sum');
    if (sha256 === '') wrong('name', `${name} has no sha256`, 'Use the published checksum of the file, or run sha256sum on it');
    if (written.source === undefined) wrong('name', `${name} has no source`, 'Set binaries.source to a local directory or a URL');
    if (written.path !== undefined && extractTo !== undefined)
      wrong('path', 'path (for files) and extractTo (for archives) are mutually exclusive', 'Remove one of them');
    const member = extractTo === undefined ? 'path' : 'extractTo';
    const target = extractTo ?? written.path ?? `/usr/bin/${name}`;
    if (!/^\/[^\0\n]+$/.test(target) || target.split('/').some((part) => part === '.' || part === '..'))
      wrong(member, `${JSON.stringify(target)} is not an absolute path`, 'Use a path that begins with /');
    const id = extractTo === undefined ? target : `archive ${name}`;
    if (paths.has(id)) wrong('name', extractTo === undefined ? `two files have the path ${target}` : `the archive ${name} is listed twice`);
    paths.add(id);
    if (extractTo !== undefined && !/\.(?:tar|tgz|txz|tar\.gz|tar\.xz)$/.test(name))
      wrong('extractTo', `${name} is not a tar archive`, 'Use a file whose name ends in .tar, .tar.gz or .tar.xz');
    return {
      name,
      source: `${trimTrailing(source, '/')}/${name}`,
      sha256: sha256.toLowerCase(),
      mode: extractTo === undefined ? mode : 0o600,
      path: target,
      isArchive: extractTo !== undefined,
    };
  }

  #place(...steps: readonly PathSegment[]): SettingLocation {
    return this.#host.place(this.#method, ...steps);
  }

  #wrong(steps: readonly PathSegment[], message: string, hint?: string): void {
    this.#wrongAt(this.#place(...steps), message, hint);
  }

  #wrongAt(at: SettingLocation, message: string, hint?: string): void {
    this.#host.report(invalidFleetValue(message, hint), at);
  }
}

/** Characters of addresses, subnets, domains and ports. */
const EXCEPTION = /^[\w.:*/[\]-]+$/;

/**
 * Resolves the proxy of a host.
 * @returns undefined: not declared; `none`: declared to have no proxy
 */
export function hostProxy({ setting, layerOf, place, report }: MergedHost): ProxySetting | undefined {
  const proxy = setting('proxy');
  if (proxy === undefined) return undefined;
  if (layerOf('proxy', 'http') === null && layerOf('proxy', 'https') === null)
    report(
      invalidFleetValue('proxy has neither http nor https', 'Set the URL of a proxy, or https: none to remove the proxy'),
      place('proxy'),
    );
  const urlOf = (member: 'http' | 'https'): string | null => {
    const url = proxy[member] ?? 'none';
    if (url === 'none') return null;
    // The value is in no message: it may contain a password.
    if (url.includes('@'))
      report(
        inlineSecret('a proxy URL with a user or a password', 'Set proxy.credentials to {env: NAME} or {file: PATH}'),
        place('proxy', member),
      );
    else if (!isProxyUrl(url))
      report(invalidFleetValue('not the URL of a proxy', 'Use the form http://proxy.example.com:3128'), place('proxy', member));
    return url;
  };
  const [http, https] = [urlOf('http'), urlOf('https')];
  const { noProxy = [], credentials } = proxy;
  for (const [i, exception] of noProxy.entries())
    if (!EXCEPTION.test(exception) && !isTemplate(exception)) {
      const message = `${JSON.stringify(exception)} is not an address, a subnet or a domain`;
      report(invalidFleetValue(message, 'Write one of them per item, such as .example.com'), place('proxy', 'noProxy', i));
    }
  const source =
    credentials === undefined
      ? null
      : secretSource('credentials', credentials, (problem) => report(problem, place('proxy', 'credentials')));
  return http === null && https === null ? 'none' : { http, https, noProxy, credentials: source };
}

function isProxyUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : null;
  return url !== null && /^(?:https?|socks5h?):$/.test(url.protocol) && url.hostname !== '' && !/["'\\\s\p{Cc}]/u.test(text);
}

/** Reads the source of a secret: the file has exactly one of both members. */
export function secretSource(
  what: string,
  { env, file }: { readonly env?: string | undefined; readonly file?: string | undefined },
  report: (problem: Problem) => void,
): SecretSource {
  if ((env === undefined) === (file === undefined))
    report(invalidFleetValue(`${what} must have exactly one source`, 'Set either env or file'));
  return env !== undefined ? { env } : { file: file ?? '' };
}
