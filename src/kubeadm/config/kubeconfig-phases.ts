/**
 * The phases of `init phase` that have `--kubeconfig`.
 * @see kubeadm 1.36 cmd/kubeadm/app/cmd/phases/init: the phases with options.KubeconfigPath in InheritFlags
 */
export const PHASES_WITH_KUBECONFIG: readonly string[] = ['upload-config', 'upload-certs', 'bootstrap-token', 'addon'];
