/** Syntax of a kubelet package version. */
export const PACKAGE_VERSION = /^1\.[0-9]{2}(?:\.[0-9]+(?:-[A-Za-z0-9.+~]+)?)?$/;

/**
 * Whether an installed version satisfies the declared one: `1.36` matches any patch release, `1.36.2` any
 * build.
 */
export function isVersion(installed: string, desired: string): boolean {
  if (installed === desired) return true;
  return /^1\.[0-9]+$/.test(desired) ? installed.startsWith(`${desired}.`) : !desired.includes('-') && installed.startsWith(`${desired}-`);
}

/** `1.36` of `1.36.2-1.1`. */
export function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.');
}

/** Whether the first version has a newer minor version. */
export function isNewerMinor(a: string, b: string): boolean {
  return Number(a.split('.')[1]) > Number(b.split('.')[1]);
}

/** The version argument for apt or dnf. */
export function packageArgument(manager: 'apt' | 'dnf' | 'yum', name: string, version: string | null): string {
  if (version === null) return name;
  const pattern = /^1\.[0-9]+$/.test(version) ? `${version}.*` : version.includes('-') ? version : `${version}-*`;
  return manager === 'apt' ? `${name}=${pattern}` : `${name}-${pattern}`;
}
