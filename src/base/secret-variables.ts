/**
 * Environment variables that pass secrets to the program. run-process.ts removes them from its environment at
 * startup, because child processes inherit it.
 */
export const SECRET_VARIABLES = {
  sshPassword: 'KUBELETADM_SSH_PASSWORD',
  sshPassphrase: 'KUBELETADM_SSH_PASSPHRASE',
  sudoPassword: 'KUBELETADM_SUDO_PASSWORD',
} as const;
