import { EXTRA_ARGS_DEB, EXTRA_ARGS_RPM } from '../../kube/well-known.ts';

/** Unit directories of systemd by priority: a drop-in overrides those of the same name in later directories. */
export const UNIT_DIRECTORIES = [
  '/etc/systemd/system',
  '/run/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
] as const;
export const KUBELET_UNIT = 'kubelet.service';
export const KUBELET_DROP_IN = 'kubelet.service.d/10-kubeadm.conf';

/** The file of `KUBELET_EXTRA_ARGS` by package type. */
export const EXTRA_ARGS_FILES = { deb: EXTRA_ARGS_DEB, rpm: EXTRA_ARGS_RPM } as const;

/** All paths that determine how systemd starts the kubelet. */
export const UNIT_FILE_PATHS: readonly string[] = [
  ...UNIT_DIRECTORIES.flatMap((directory) => [`${directory}/${KUBELET_UNIT}`, `${directory}/${KUBELET_DROP_IN}`]),
  ...Object.values(EXTRA_ARGS_FILES),
];
